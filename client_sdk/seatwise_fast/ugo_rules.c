/* UGO! for one table or thousands, and a search on it.
 *
 * U1 to U33 are the numbers of the rules, as in seatwise_referee.games.ugo. That package is the authority, and
 * tests compare this file with it move by move. The referee never uses this file.
 *
 * A card is 9 x colour + value. A set of cards is 45 bits. An action is a card (0 to 44), or 45 + p for the p-th
 * order of the won cards, in the order in which the referee lists them.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    CARDS = 45, VALUES = 9, COLOURS = 5, SECTIONS = 5, MOST_SEATS = 4, HAND_SIZE = 10,
    FIRST_ORDER = 45, ACTIONS = 69, MOST_FARMERS = 9, MOST_ORDERS = 24
};
#define ALL_CARDS ((UINT64_C(1) << CARDS) - 1)
#define BIT(card) (UINT64_C(1) << (card))
#define COLOUR_BITS(colour) (UINT64_C(511) << (VALUES * (colour)))
/* A round by itself takes at most ten cards of each seat. */
#define LONGEST_PATH (HAND_SIZE * MOST_SEATS)

typedef struct {
    uint64_t hand[MOST_SEATS];
    uint64_t played[MOST_SEATS]; /* in this round, with the card in the trick */
    int32_t points[MOST_SEATS];  /* of all finished rounds */
    int32_t round_points[MOST_SEATS]; /* of the last finished round */
    int8_t trick[MOST_SEATS];    /* in the order played */
    int8_t won[MOST_SEATS];      /* what the winner must lay, in the default order */
    int8_t section[MOST_SEATS][COLOURS]; /* the section of each colour, or -1 */
    int8_t top[MOST_SEATS][SECTIONS];    /* the value on top of each section, or -1 */
    int8_t opened[MOST_SEATS];   /* number of sections with cards; they open from the left */
    int8_t farmers[MOST_SEATS];
    uint8_t missing[MOST_SEATS]; /* bit n: this seat has shown that it has no card of colour n */
    int8_t trick_size, leader, asked, is_laying, supply, seats, round, rounds, is_over;
} ugo_table;

static int8_t value_of[CARDS], colour_of[CARDS];
static int8_t gain_of_loser[CARDS][CARDS];             /* U22: by the best card and the losing one */
static const int8_t gain_of_winner[VALUES] = {0, 0, 0, 2, 2, 2, 1, 1, 0}; /* U21 */
static const int8_t places[SECTIONS] = {0, 0, 2, 3, 4};                   /* U23 */
static const int8_t printed[SECTIONS] = {0, 0, 1, 3, 5};                  /* U29 */
static int8_t farmers_in[MOST_FARMERS + 1][SECTIONS];
static int8_t orders[MOST_SEATS + 1][MOST_ORDERS][MOST_SEATS];
static const int order_count[MOST_SEATS + 1] = {1, 1, 2, 6, 24};
static double factorial[CARDS + 1];

/* --- Tables of the rules ----------------------------------------------------------------------------- */

static void list_orders(int count)
{
    for (int number = 0; number < order_count[count]; number++) {
        int8_t left[MOST_SEATS] = {0, 1, 2, 3};
        int rest = number, block = order_count[count];
        for (int place = 0; place < count; place++) {
            int remaining = count - place;
            block /= remaining;
            int chosen = rest / block;
            rest %= block;
            orders[count][number][place] = left[chosen];
            for (int next = chosen; next < remaining - 1; next++)
                left[next] = left[next + 1];
        }
    }
}

static void list_gains(void)
{
    for (int best = 0; best < CARDS; best++)
        for (int card = 0; card < CARDS; card++) {
            int is_low = value_of[card] == 1 || value_of[card] == 2;
            gain_of_loser[best][card] = is_low ? 2 - value_of[card] + (colour_of[card] != colour_of[best]) : 0;
        }
}

/* Fill the tables. The module calls it once, before anything else. */
void ugo_prepare(void)
{
    for (int card = 0; card < CARDS; card++) {
        value_of[card] = card % VALUES;
        colour_of[card] = card / VALUES;
    }
    list_gains();
    for (int farmers = 0; farmers <= MOST_FARMERS; farmers++)
        for (int section = 0, rest = farmers; section < SECTIONS; section++) {
            farmers_in[farmers][section] = rest < places[section] ? rest : places[section];
            rest -= farmers_in[farmers][section];
        }
    for (int count = 1; count <= MOST_SEATS; count++)
        list_orders(count);
    factorial[0] = 1;
    for (int number = 1; number <= CARDS; number++)
        factorial[number] = factorial[number - 1] * number;
}

/* --- Random numbers: SplitMix64 (Steele, Lea, Flood 2014) -------------------------------------------- */

static inline uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = (*state += UINT64_C(0x9E3779B97F4A7C15));
    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94D049BB133111EB);
    return mixed ^ (mixed >> 31);
}

static inline int random_below(uint64_t *state, int limit)
{
    return (int)(((next_random(state) >> 32) * (uint64_t)limit) >> 32);
}

static inline double random_unit(uint64_t *state)
{
    return (double)(next_random(state) >> 11) * 0x1p-53;
}

static inline int first_card(uint64_t cards)
{
    return __builtin_ctzll(cards);
}

static inline int random_card(uint64_t cards, uint64_t *random)
{
    for (int skipped = random_below(random, __builtin_popcountll(cards)); skipped; skipped--)
        cards &= cards - 1;
    return first_card(cards);
}

/* --- The rules --------------------------------------------------------------------------------------- */

static int score_seat(const ugo_table *table, int seat) /* U27 to U31 */
{
    const int8_t *farmers = farmers_in[table->farmers[seat]];
    int points = 0;
    for (int section = 0; section < SECTIONS; section++) {
        int empty = places[section] - farmers[section];
        if (section >= table->opened[seat])
            points += empty ? 0 : printed[section];
        else
            points += empty ? -5 * empty : table->top[seat][section];
    }
    return points;
}

static void clear_round(ugo_table *table) /* U4, U7, U8 */
{
    memset(table->hand, 0, sizeof table->hand);
    memset(table->played, 0, sizeof table->played);
    memset(table->section, -1, sizeof table->section);
    memset(table->top, -1, sizeof table->top);
    memset(table->opened, 0, sizeof table->opened);
    memset(table->farmers, 0, sizeof table->farmers);
    memset(table->missing, 0, sizeof table->missing);
    table->trick_size = 0;
    table->is_laying = 0;
    table->supply = table->seats == 2 ? 12 : 36;
    table->leader = table->asked = (int8_t)((table->round - 1) % table->seats);
}

static void deal_round(ugo_table *table, const uint8_t *deals) /* U6 */
{
    const uint8_t *deal = deals + CARDS * (table->round - 1);
    clear_round(table);
    for (int seat = 0; seat < table->seats; seat++)
        for (int place = 0; place < HAND_SIZE; place++)
            table->hand[seat] |= BIT(deal[seat * HAND_SIZE + place]);
}

/* Begin matches. `deals` has 45 cards for each round of each table; the first ten are the hand of seat 0. */
void ugo_deal(ugo_table *tables, int count, int seats, int rounds, const uint8_t *deals)
{
    memset(tables, 0, sizeof *tables * (size_t)count);
    for (int number = 0; number < count; number++) {
        ugo_table *table = tables + number;
        table->seats = (int8_t)seats;
        table->rounds = (int8_t)rounds;
        table->round = 1;
        deal_round(table, deals + (size_t)number * CARDS * rounds);
    }
}

static void end_round(ugo_table *table, const uint8_t *deals)
{
    for (int seat = 0; seat < table->seats; seat++)
        table->points[seat] += table->round_points[seat] = score_seat(table, seat);
    if (table->round == table->rounds) {
        table->is_over = 1;
        return;
    }
    table->round++;
    deal_round(table, deals);
}

static inline uint64_t legal_cards(const ugo_table *table) /* U9, U10 */
{
    uint64_t hand = table->hand[table->asked];
    if (table->trick_size) {
        uint64_t following = hand & COLOUR_BITS(colour_of[table->trick[0]]);
        if (following)
            return following;
    }
    return hand;
}

static inline void lay_card(ugo_table *table, int seat, int card) /* U17, U18 */
{
    int colour = colour_of[card], section = table->section[seat][colour];
    if (section < 0)
        section = table->section[seat][colour] = table->opened[seat]++;
    table->top[seat][section] = value_of[card];
}

static inline void finish_laying(ugo_table *table, const uint8_t *deals)
{
    table->is_laying = 0;
    if (!table->hand[table->leader])
        end_round(table, deals);
}

/* The colour with the highest top first; the cards of one colour in rising order. */
static inline void write_default_order(const int8_t *trick, int count, int8_t *out)
{
    int8_t rising[MOST_SEATS], top[COLOURS] = {0};
    for (int done = 0; done < count; done++) {
        int place = done;
        for (; place > 0 && rising[place - 1] > trick[done]; place--)
            rising[place] = rising[place - 1];
        rising[place] = trick[done];
    }
    for (int done = 0; done < count; done++)
        top[colour_of[rising[done]]] = value_of[rising[done]];
    for (int done = 0; done < count; done++) {
        int place = done, key = top[colour_of[rising[done]]];
        for (; place > 0 && top[colour_of[out[place - 1]]] < key; place--)
            out[place] = out[place - 1];
        out[place] = rising[done];
    }
}

static inline int winning_place(const int8_t *trick, int count) /* U11 to U13 */
{
    int led = colour_of[trick[0]], best = 0, most = -1;
    for (int place = 0; place < count; place++) {
        int strength = 2 * value_of[trick[place]] + (colour_of[trick[place]] == led);
        if (strength > most) {
            most = strength;
            best = place;
        }
    }
    return best;
}

static inline void take_farmers(ugo_table *table, int place) /* U21 to U25: the winner first, then clockwise */
{
    int best = table->trick[place], seats = table->seats, winner = (table->leader + place) % seats;
    for (int turn = 0; turn < seats; turn++) {
        int seat = (winner + turn) % seats, card = table->trick[(seat - table->leader + seats) % seats];
        int taken = turn ? gain_of_loser[best][card] : gain_of_winner[value_of[best]];
        int room = MOST_FARMERS - table->farmers[seat];
        taken = taken < room ? taken : room;
        taken = taken < table->supply ? taken : table->supply;
        table->farmers[seat] += taken;
        table->supply -= taken;
    }
}

static inline int has_choice(const ugo_table *table, int winner) /* U18, U19 */
{
    int colours = 0, added = 0;
    for (int place = 0; place < table->seats; place++) {
        int colour = colour_of[table->won[place]];
        if (colours >> colour & 1)
            return 1;
        colours |= 1 << colour;
        added += table->section[winner][colour] < 0;
    }
    return added > 1;
}

static inline void end_trick(ugo_table *table, const uint8_t *deals, int asks)
{
    int place = winning_place(table->trick, table->seats), winner = (table->leader + place) % table->seats;
    take_farmers(table, place);
    write_default_order(table->trick, table->seats, table->won);
    table->leader = table->asked = (int8_t)winner;
    table->trick_size = 0;
    if (asks && has_choice(table, winner)) {
        table->is_laying = 1;
        return;
    }
    for (int card = 0; card < table->seats; card++)
        lay_card(table, winner, table->won[card]);
    finish_laying(table, deals);
}

/* Without `asks` the winner lays in the default order, as the simulated players of a search do. */
static inline void play_card(ugo_table *table, int card, const uint8_t *deals, int asks)
{
    int seat = table->asked;
    table->hand[seat] ^= BIT(card);
    table->played[seat] |= BIT(card);
    if (table->trick_size && colour_of[card] != colour_of[table->trick[0]])
        table->missing[seat] |= (uint8_t)(1 << colour_of[table->trick[0]]);
    table->trick[table->trick_size++] = (int8_t)card;
    if (table->trick_size < table->seats)
        table->asked = (int8_t)(seat + 1 == table->seats ? 0 : seat + 1);
    else
        end_trick(table, deals, asks);
}

static inline int is_legal(const ugo_table *table, int action)
{
    if (table->is_laying)
        return action >= FIRST_ORDER && action < FIRST_ORDER + order_count[table->seats];
    return action >= 0 && action < CARDS && (legal_cards(table) >> action & 1);
}

static inline int is_action_legal(const ugo_table *table, int64_t action)
{
    return action >= 0 && action < ACTIONS && is_legal(table, (int)action);
}

static inline void apply_action(ugo_table *table, int action, const uint8_t *deals)
{
    if (!table->is_laying) {
        play_card(table, action, deals, 1);
        return;
    }
    const int8_t *order = orders[table->seats][action - FIRST_ORDER];
    for (int place = 0; place < table->seats; place++)
        lay_card(table, table->leader, table->won[order[place]]);
    finish_laying(table, deals);
}

/* --- One table --------------------------------------------------------------------------------------- */

/* What the seat to move may do, in one number: the legal cards as bits; or 2^62 while cards are laid; 0 at the end. */
uint64_t ugo_choices(const ugo_table *table)
{
    if (table->is_over)
        return 0;
    return table->is_laying ? UINT64_C(1) << 62 : legal_cards(table);
}

/* Take one action. Return the choices that follow, or 2^63 for an illegal action, which changes nothing. */
uint64_t ugo_act(ugo_table *table, int action, const uint8_t *deals)
{
    if (table->is_over || !is_legal(table, action))
        return UINT64_C(1) << 63;
    apply_action(table, action, deals);
    return ugo_choices(table);
}

/* --- Many tables ------------------------------------------------------------------------------------- */

/* Take one action at each table that goes on. Return -1; or the first table with an illegal one, and change nothing. */
int ugo_step(ugo_table *tables, int count, const int64_t *actions, const uint8_t *deals)
{
    for (int number = 0; number < count; number++)
        if (!tables[number].is_over && !is_action_legal(tables + number, actions[number]))
            return number;
    for (int number = 0; number < count; number++)
        if (!tables[number].is_over)
            apply_action(tables + number, (int)actions[number], deals + (size_t)number * CARDS * tables[number].rounds);
    return -1;
}

/* Write 69 bytes for each table: 1 for each legal action, all 0 at the end of a match. */
void ugo_mask(const ugo_table *tables, int count, uint8_t *out)
{
    memset(out, 0, (size_t)count * ACTIONS);
    for (int number = 0; number < count; number++, out += ACTIONS) {
        const ugo_table *table = tables + number;
        if (table->is_over)
            continue;
        if (table->is_laying)
            memset(out + FIRST_ORDER, 1, (size_t)order_count[table->seats]);
        else
            for (uint64_t cards = legal_cards(table); cards; cards &= cards - 1)
                out[first_card(cards)] = 1;
    }
}

/* Write a random legal action for each table, 0 for one that is over. */
void ugo_random_actions(const ugo_table *tables, int count, int64_t *out, uint64_t *random)
{
    for (int number = 0; number < count; number++) {
        const ugo_table *table = tables + number;
        if (table->is_over)
            out[number] = 0;
        else if (table->is_laying)
            out[number] = FIRST_ORDER + random_below(random, order_count[table->seats]);
        else
            out[number] = random_card(legal_cards(table), random);
    }
}

/* --- Observations, version 1: the layout is in seatwise.rl.observation ------------------------------- */

static int8_t *write_cards(int8_t *out, uint64_t cards)
{
    for (; cards; cards &= cards - 1)
        out[first_card(cards)] = 1;
    return out + CARDS;
}

static int8_t *write_kingdom(int8_t *out, const ugo_table *table, int seat)
{
    for (int section = 0; section < SECTIONS; section++, out += VALUES + 1)
        out[table->top[seat][section] + 1] = 1;
    for (int colour = 0; colour < COLOURS; colour++)
        if (table->section[seat][colour] >= 0)
            out[table->section[seat][colour] * COLOURS + colour] = 1;
    out += SECTIONS * COLOURS;
    out[table->farmers[seat]] = 1;
    out += MOST_FARMERS + 1;
    for (int colour = 0; colour < COLOURS; colour++)
        out[colour] = table->missing[seat] >> colour & 1;
    out += COLOURS;
    int32_t points = table->points[seat];
    *out = (int8_t)(points > 100 ? 100 : points < -100 ? -100 : points);
    return out + 1;
}

static void observe_table(const ugo_table *table, int viewer, int8_t *out)
{
    int seats = table->seats;
    out = write_cards(out, table->hand[viewer]);
    for (int turn = 0; turn < seats; turn++)
        out = write_cards(out, table->played[(viewer + turn) % seats]);
    for (int place = 0; place < table->trick_size; place++)
        out[(table->leader + place - viewer + seats) % seats * CARDS + table->trick[place]] = 1;
    out += seats * CARDS;
    for (int place = 0; table->is_laying && place < seats; place++)
        out[table->won[place]] = 1;
    out += CARDS;
    for (int turn = 0; turn < seats; turn++)
        out = write_kingdom(out, table, (viewer + turn) % seats);
    out[table->supply < 12 ? table->supply : 12] = 1;
    out += 13;
    out[table->rounds - table->round] = 1;
    out += 8;
    out[(table->leader - viewer + seats) % seats] = 1;
    out += seats;
    if (!table->is_over)
        out[(table->asked - viewer + seats) % seats] = 1;
    out += seats;
    *out = table->is_laying;
}

/* Write `size` bytes for each table: what `viewer` sees, or for -1 the seat that is asked. */
void ugo_observe(const ugo_table *tables, int count, int viewer, int size, int8_t *out)
{
    memset(out, 0, (size_t)count * (size_t)size);
    for (int number = 0; number < count; number++, out += size)
        observe_table(tables + number, viewer < 0 ? tables[number].asked : viewer, out);
}

/* --- Worlds: hands that one seat cannot tell from the true ones -------------------------------------- */

enum { NO_MEMORY = -1, NO_WORLD = -2 };
enum { MOST_OTHERS = MOST_SEATS - 1, STATES = (HAND_SIZE + 1) * (HAND_SIZE + 1) * (HAND_SIZE + 1) };

/* The unseen cards, in groups. Each restricted colour is a group; all colours that anyone may hold are the last one. */
typedef struct {
    int others, seat[MOST_OTHERS], size[MOST_OTHERS];
    int groups, count[COLOURS + 1], missing[COLOURS + 1]; /* bit n: the n-th of the others has none of the group */
    int8_t card[COLOURS + 1][CARDS];
    double *ways; /* by group and by what the others still lack: in how many ways the rest can be dealt */
} unseen_cards;

static int state_of(const int *lacking)
{
    return (lacking[0] * (HAND_SIZE + 1) + lacking[1]) * (HAND_SIZE + 1) + lacking[2];
}

/* In how many ways `count` cards are dealt so: given[n] to the n-th of the others, the rest set aside. */
static double ways_to_deal(int count, const int *given)
{
    int aside = count - given[0] - given[1] - given[2];
    return factorial[count] / (factorial[given[0]] * factorial[given[1]] * factorial[given[2]] * factorial[aside]);
}

static int most_given(const unseen_cards *unseen, int group, int other, int lacking, int left)
{
    if (unseen->missing[group] >> other & 1)
        return 0;
    return lacking < left ? lacking : left;
}

static double count_ways(const unseen_cards *unseen, int group, const int *lacking);

/* Add up the ways over all that may be given of a group; stop where the sum exceeds `until`, with that in `given`. */
static double sum_ways(const unseen_cards *unseen, int group, const int *lacking, double until, int *given)
{
    double sum = 0;
    int count = unseen->count[group], last[MOST_OTHERS] = {0, 0, 0};
    int most = most_given(unseen, group, 0, lacking[0], count);
    for (given[0] = 0; given[0] <= most; given[0]++) {
        int second = most_given(unseen, group, 1, lacking[1], count - given[0]);
        for (given[1] = 0; given[1] <= second; given[1]++) {
            int third = most_given(unseen, group, 2, lacking[2], count - given[0] - given[1]);
            for (given[2] = 0; given[2] <= third; given[2]++) {
                int rest[MOST_OTHERS] = {lacking[0] - given[0], lacking[1] - given[1], lacking[2] - given[2]};
                double ways = count_ways(unseen, group + 1, rest);
                if (ways == 0)
                    continue;
                memcpy(last, given, sizeof last);
                sum += ways * ways_to_deal(count, given);
                if (sum > until)
                    return sum;
            }
        }
    }
    memcpy(given, last, sizeof last); /* rounding has left nothing: the last possible one */
    return sum;
}

static double count_ways(const unseen_cards *unseen, int group, const int *lacking)
{
    if (group == unseen->groups - 1) { /* everyone may hold these, so they fill all that is lacking */
        int needed = lacking[0] + lacking[1] + lacking[2];
        return needed <= unseen->count[group] ? ways_to_deal(unseen->count[group], lacking) : 0;
    }
    double *known = unseen->ways + group * STATES + state_of(lacking);
    if (*known < 0) {
        int given[MOST_OTHERS];
        *known = sum_ways(unseen, group, lacking, INFINITY, given);
    }
    return *known;
}

/* Which of the others have shown that they have none of a colour: bit n is the n-th of them. */
static int others_without(const unseen_cards *unseen, const ugo_table *table, int colour)
{
    int missing = 0;
    for (int other = 0; other < unseen->others; other++)
        missing |= (table->missing[unseen->seat[other]] >> colour & 1) << other;
    return missing;
}

static void add_group(unseen_cards *unseen, uint64_t cards, int missing)
{
    int group = unseen->groups++;
    unseen->missing[group] = missing;
    for (; cards; cards &= cards - 1)
        unseen->card[group][unseen->count[group]++] = (int8_t)first_card(cards);
}

/* Write down the other seats with the sizes of their hands. Return the cards that `viewer` does not see. */
static uint64_t list_others(unseen_cards *unseen, const ugo_table *table, int viewer)
{
    uint64_t hidden = ALL_CARDS & ~table->hand[viewer];
    for (int seat = 0; seat < table->seats; seat++) {
        hidden &= ~table->played[seat];
        if (seat != viewer) {
            unseen->size[unseen->others] = HAND_SIZE - __builtin_popcountll(table->played[seat]);
            unseen->seat[unseen->others++] = seat;
        }
    }
    return hidden;
}

/* Sort the cards that `viewer` does not see. Return 1; NO_MEMORY; or NO_WORLD if no deal fits what is seen. */
static int list_unseen(unseen_cards *unseen, const ugo_table *table, int viewer)
{
    memset(unseen, 0, sizeof *unseen);
    uint64_t hidden = list_others(unseen, table, viewer), shared = 0;
    for (int colour = 0; colour < COLOURS; colour++) {
        uint64_t cards = hidden & COLOUR_BITS(colour);
        int missing = others_without(unseen, table, colour);
        if (missing)
            add_group(unseen, cards, missing);
        else
            shared |= cards;
    }
    add_group(unseen, shared, 0);
    unseen->ways = malloc(sizeof(double) * STATES * (size_t)unseen->groups);
    if (!unseen->ways)
        return NO_MEMORY;
    for (int state = 0; state < STATES * unseen->groups; state++)
        unseen->ways[state] = -1;
    if (count_ways(unseen, 0, unseen->size) > 0)
        return 1;
    free(unseen->ways);
    return NO_WORLD;
}

static void give_cards(ugo_table *table, unseen_cards *unseen, int group, const int *given, uint64_t *random)
{
    int8_t *cards = unseen->card[group];
    int next = 0;
    for (int other = 0; other < unseen->others; other++)
        for (int taken = 0; taken < given[other]; taken++, next++) {
            int chosen = next + random_below(random, unseen->count[group] - next);
            int8_t card = cards[chosen];
            cards[chosen] = cards[next];
            cards[next] = card;
            table->hand[unseen->seat[other]] |= BIT(card);
        }
}

/* Deal the unseen cards, each possible way with the same probability. */
static void deal_unseen(ugo_table *table, unseen_cards *unseen, uint64_t *random)
{
    int lacking[MOST_OTHERS], given[MOST_OTHERS];
    memcpy(lacking, unseen->size, sizeof lacking);
    for (int other = 0; other < unseen->others; other++)
        table->hand[unseen->seat[other]] = 0;
    for (int group = 0; group < unseen->groups - 1; group++) {
        double all = count_ways(unseen, group, lacking);
        sum_ways(unseen, group, lacking, random_unit(random) * all, given);
        give_cards(table, unseen, group, given, random);
        for (int other = 0; other < MOST_OTHERS; other++)
            lacking[other] -= given[other];
    }
    give_cards(table, unseen, unseen->groups - 1, lacking, random);
}

/* Deal `count` worlds that `viewer` cannot tell from `table`, and write them to `out`. Return 1 or an error. */
int ugo_worlds(const ugo_table *table, int viewer, int count, uint64_t seed, ugo_table *out)
{
    unseen_cards unseen;
    int error = list_unseen(&unseen, table, viewer);
    if (error < 0)
        return error;
    for (int number = 0; number < count; number++) {
        out[number] = *table;
        deal_unseen(out + number, &unseen, &seed);
    }
    free(unseen.ways);
    return 1;
}

/* --- Search: single-observer IS-MCTS (Cowling, Powley, Whitehouse 2012) ------------------------------ */

typedef struct {
    int child, next, visits, available;
    double sum;
    int action;
} search_node;

/* How much the simulated players deviate from leading high and following low, as in the sample `counting`. */
#define WHIM 7.0
/* The weight of exploration in UCB1, in points of a round. */
#define EXPLORATION 8.0
/* The time is looked up once in so many iterations. */
#define ITERATIONS_A_LOOK 32
/* Then the tree grows no more. One node takes 40 bytes. */
#define MOST_NODES (1 << 19)

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int most_wanted(uint64_t cards, const double *wish, int leads)
{
    int best = -1;
    for (; cards; cards &= cards - 1) {
        int card = first_card(cards);
        if (best < 0 || (leads ? wish[card] > wish[best] : wish[card] < wish[best]))
            best = card;
    }
    return best;
}

static void play_out(ugo_table *table, uint64_t *random)
{
    double wish[CARDS];
    for (int card = 0; card < CARDS; card++)
        wish[card] = value_of[card] + WHIM * random_unit(random);
    while (!table->is_over)
        play_card(table, most_wanted(legal_cards(table), wish, table->trick_size == 0), NULL, 0);
}

/* The points of the round, less the mean of the other seats. */
static double reward_of(const ugo_table *table, int seat)
{
    double others = 0;
    for (int other = 0; other < table->seats; other++)
        if (other != seat)
            others += table->round_points[other];
    return table->round_points[seat] - others / (table->seats - 1);
}

/* Return the known child with the highest bound among the legal cards, and take the known ones out of `untried`. */
static int choose_child(search_node *nodes, int parent, uint64_t legal, uint64_t *untried)
{
    int best = -1;
    double highest = -INFINITY;
    for (int index = nodes[parent].child; index >= 0; index = nodes[index].next) {
        search_node *node = nodes + index;
        if (!(legal >> node->action & 1))
            continue;
        *untried &= ~BIT(node->action);
        node->available++;
        double bound = node->sum / node->visits + EXPLORATION * sqrt(log(node->available) / node->visits);
        if (bound > highest) {
            highest = bound;
            best = index;
        }
    }
    return best;
}

static int add_child(search_node *nodes, int *used, int parent, int action)
{
    int index = (*used)++;
    nodes[index] = (search_node){-1, nodes[parent].child, 0, 1, 0, action};
    nodes[parent].child = index;
    return index;
}

/* One iteration: down the tree in one world, one new node, a simulated rest of the round, and the points back up. */
static void iterate(search_node *nodes, int *used, int capacity, ugo_table *world, uint64_t *random)
{
    int path[LONGEST_PATH], mover[LONGEST_PATH], length = 0, current = 0, is_new = 0;
    while (!world->is_over && !is_new) {
        uint64_t legal = legal_cards(world), untried = legal;
        int child = choose_child(nodes, current, legal, &untried);
        if (untried && *used < capacity) {
            child = add_child(nodes, used, current, random_card(untried, random));
            is_new = 1;
        }
        if (child < 0)
            break;
        path[length] = current = child;
        mover[length++] = world->asked;
        play_card(world, nodes[child].action, NULL, 0);
    }
    if (!world->is_over)
        play_out(world, random);
    while (length--) {
        nodes[path[length]].visits++;
        nodes[path[length]].sum += reward_of(world, mover[length]);
    }
}

static int most_visited(const search_node *nodes)
{
    int best = nodes[0].child;
    for (int index = best; index >= 0; index = nodes[index].next)
        if (nodes[index].visits > nodes[best].visits)
            best = index;
    return best < 0 ? -1 : nodes[best].action;
}

static int run_search(search_node *nodes, int capacity, const ugo_table *table, unseen_cards *unseen, int most,
                      double seconds, uint64_t *random, int *done)
{
    int used = 1;
    double end = seconds_now() + seconds;
    nodes[0] = (search_node){-1, -1, 0, 0, 0, -1};
    for (*done = 0; *done < most; (*done)++) {
        if (seconds > 0 && *done % ITERATIONS_A_LOOK == 0 && *done && seconds_now() >= end)
            break;
        ugo_table world = *table;
        world.rounds = world.round; /* the search ends with the round */
        deal_unseen(&world, unseen, random);
        iterate(nodes, &used, capacity, &world, random);
    }
    return most_visited(nodes);
}

/* Search for the card to play, for the seat that is asked. Only its own hand in `table` is read.
 *
 * It ends after `most` iterations; with `seconds` above 0 also after that time. It writes the number of iterations
 * to `done`. Return the card, or an error. The same table, iterations and seed give the same card.
 */
int ugo_search(const ugo_table *table, int most, double seconds, uint64_t seed, int *done)
{
    uint64_t legal = legal_cards(table);
    unseen_cards unseen;
    *done = 0;
    if (!(legal & (legal - 1)))
        return first_card(legal);
    int error = list_unseen(&unseen, table, table->asked);
    if (error < 0)
        return error;
    int capacity = most < MOST_NODES ? most + 1 : MOST_NODES, card = NO_MEMORY;
    search_node *nodes = malloc(sizeof *nodes * (size_t)capacity);
    if (nodes)
        card = run_search(nodes, capacity, table, &unseen, most, seconds, &seed, done);
    free(nodes);
    free(unseen.ways);
    return card;
}

/* --- The deals of the bot `counting`, with the very random numbers that it draws in Python ------------ */

/* Words of Python's generator, drawn in advance. `used` goes on behind the last one, if there are too few. */
typedef struct {
    const uint32_t *word;
    int count, used;
} python_random;

typedef struct {
    int8_t card[HAND_SIZE];
    int size;
} card_row;

static uint32_t next_word(python_random *random)
{
    int number = random->used++;
    return number < random->count ? random->word[number] : 0;
}

static double python_unit(python_random *random) /* random.random() */
{
    uint32_t high = next_word(random) >> 5, low = next_word(random) >> 6;
    return (high * 67108864.0 + low) * (1.0 / 9007199254740992.0);
}

static int python_below(python_random *random, int limit) /* as random.shuffle() draws: the next bits that are below */
{
    int unused = __builtin_clz((unsigned)limit), drawn;
    do
        drawn = (int)(next_word(random) >> unused);
    while (drawn >= limit);
    return drawn;
}

static void python_shuffle(int8_t *cards, int count, python_random *random)
{
    for (int last = count - 1; last > 0; last--) {
        int other = python_below(random, last + 1);
        int8_t card = cards[last];
        cards[last] = cards[other];
        cards[other] = card;
    }
}

static int8_t take_from(int8_t *cards, int *count, int place)
{
    int8_t card = cards[place];
    (*count)--;
    memmove(cards + place, cards + place + 1, (size_t)(*count - place));
    return card;
}

/* Move cards to a hand, those of the missing colours or the others. */
static void deal_fitting(card_row *hand, int size, int8_t *pool, int *left, int missing, int wanted)
{
    for (int place = 0; place < *left && hand->size < size;)
        if ((missing >> colour_of[pool[place]] & 1) == wanted)
            hand->card[hand->size++] = take_from(pool, left, place);
        else
            place++;
}

static void sort_by_wish(card_row *hand, const double *wish)
{
    for (int place = 1; place < hand->size; place++) {
        int8_t card = hand->card[place];
        int free_place = place;
        for (; free_place && wish[hand->card[free_place - 1]] > wish[card]; free_place--)
            hand->card[free_place] = hand->card[free_place - 1];
        hand->card[free_place] = card;
    }
}

static void follow_trick(int8_t *trick, int *size, card_row *hand) /* with the first card that follows, or the first */
{
    int place = 0;
    while (place < hand->size && colour_of[hand->card[place]] != colour_of[trick[0]])
        place++;
    trick[(*size)++] = take_from(hand->card, &hand->size, place < hand->size ? place : 0);
}

/* The colour with the highest top first, its highest card on top; of equal ones the one that was played first. */
static void lay_counted(ugo_table *table, int seat, const int8_t *trick)
{
    int laid = 0;
    for (int value = VALUES - 1; value >= 0; value--)
        for (int place = 0; place < table->seats; place++) {
            int card = trick[place], colour = colour_of[card];
            if (value_of[card] != value || laid >> colour & 1)
                continue;
            laid |= 1 << colour;
            lay_card(table, seat, card);
        }
}

static void gain_counted(int *farmers, const ugo_table *table, const int8_t *trick, int best)
{
    for (int place = 0; place < table->seats; place++)
        farmers[(table->leader + place) % table->seats] +=
            place == best ? gain_of_winner[value_of[trick[best]]] : gain_of_loser[trick[best]][trick[place]];
}

static void count_out(ugo_table table, const card_row *dealt, int card, int64_t *points)
{
    card_row hands[MOST_SEATS];
    int8_t trick[MOST_SEATS];
    int seats = table.seats, size = table.trick_size, farmers[MOST_SEATS], place = 0;
    memcpy(hands, dealt, sizeof hands);
    memcpy(trick, table.trick, sizeof trick);
    for (int seat = 0; seat < seats; seat++)
        farmers[seat] = table.farmers[seat];
    card_row *own = &hands[table.asked];
    while (own->card[place] != card)
        place++;
    trick[size++] = take_from(own->card, &own->size, place);
    for (;;) {
        while (size < seats)
            follow_trick(trick, &size, &hands[(table.leader + size) % seats]);
        int best = winning_place(trick, seats);
        gain_counted(farmers, &table, trick, best);
        table.leader = (int8_t)((table.leader + best) % seats);
        lay_counted(&table, table.leader, trick);
        card_row *leading = &hands[table.leader];
        if (!leading->size)
            break;
        trick[0] = leading->card[--leading->size];
        size = 1;
    }
    for (int seat = 0; seat < seats; seat++) {
        int most = table.farmers[seat] + table.supply;
        most = most < MOST_FARMERS ? most : MOST_FARMERS;
        table.farmers[seat] = (int8_t)(farmers[seat] < most ? farmers[seat] : most);
        points[seat] += score_seat(&table, seat);
    }
}

/* Sample some deals, and add the points of each seat after each card. `pool` and `used` go on from call to call.
 * `others` are the other seats in the order of dealing. Return 0, or -1 if there are too few random words. */
int ugo_count_deals(const ugo_table *table, const int8_t *sizes, const int8_t *others, int8_t *pool, int pool_size,
                    double whim, const uint32_t *words, int count, int *used, int deals, const int8_t *cards,
                    int card_count, int64_t *points)
{
    python_random random = {words, count, *used};
    card_row own = {.size = 0};
    for (int card = 0; card < CARDS; card++)
        if (table->hand[table->asked] >> card & 1)
            own.card[own.size++] = (int8_t)card;
    for (int deal = 0; deal < deals; deal++) {
        card_row hands[MOST_SEATS] = {{.size = 0}};
        double wish[CARDS];
        int8_t rest[CARDS];
        int left = pool_size;
        hands[table->asked] = own;
        python_shuffle(pool, pool_size, &random);
        memcpy(rest, pool, (size_t)pool_size);
        for (int other = 0; other < table->seats - 1; other++) {
            int seat = others[other], missing = table->missing[seat];
            deal_fitting(&hands[seat], sizes[seat], rest, &left, missing, 0);
            deal_fitting(&hands[seat], sizes[seat], rest, &left, missing, 1);
        }
        for (int card = 0; card < CARDS; card++)
            wish[card] = value_of[card] + whim * python_unit(&random);
        if (random.used > count)
            return -1;
        for (int seat = 0; seat < table->seats; seat++)
            sort_by_wish(&hands[seat], wish);
        for (int number = 0; number < card_count; number++)
            count_out(*table, hands, cards[number], points + MOST_SEATS * number);
    }
    *used = random.used;
    return 0;
}
