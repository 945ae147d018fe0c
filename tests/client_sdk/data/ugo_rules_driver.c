/* Plays whole matches with the rules, the search and the counted deals of seatwise_fast, for a build with sanitizers. */
#include "ugo_rules.c"

#include <stdio.h>

enum { TABLES = 8, MOST_SIZE = 844, WORDS = 4000, FEW_WORDS = 50 };

static void shuffle_deal(uint8_t *deal, uint64_t *random)
{
    for (int card = 0; card < CARDS; card++)
        deal[card] = (uint8_t)card;
    for (int last = CARDS - 1; last > 0; last--) {
        int other = random_below(random, last + 1);
        uint8_t card = deal[last];
        deal[last] = deal[other];
        deal[other] = card;
    }
}

static int8_t write_set(uint64_t cards, int8_t *out)
{
    int8_t count = 0;
    for (; cards; cards &= cards - 1)
        out[count++] = (int8_t)first_card(cards);
    return count;
}

static void count_deals(const ugo_table *table, uint64_t *random)
{
    uint32_t *words = malloc(sizeof *words * WORDS);
    int8_t sizes[MOST_SEATS], others[MOST_SEATS], pool[CARDS], cards[HAND_SIZE];
    uint64_t unseen = ALL_CARDS & ~table->hand[table->asked];
    int used = 0, other_count = 0, few = 0, card_count = write_set(legal_cards(table), cards);
    int64_t *points = calloc((size_t)(MOST_SEATS * card_count), sizeof *points);
    for (int word = 0; word < WORDS; word++)
        words[word] = (uint32_t)next_random(random);
    for (int seat = 0; seat < table->seats; seat++) {
        sizes[seat] = (int8_t)__builtin_popcountll(table->hand[seat]);
        unseen &= ~table->played[seat];
        if (seat != table->asked)
            others[other_count++] = (int8_t)seat;
    }
    int size = write_set(unseen, pool);
    if (ugo_count_deals(table, sizes, others, pool, size, 7, words, FEW_WORDS, &few, 4, cards, card_count, points) != -1)
        abort();
    if (ugo_count_deals(table, sizes, others, pool, size, 7, words, WORDS, &used, 4, cards, card_count, points))
        abort();
    if (few || used <= 8 * CARDS || used > WORDS)
        abort();
    free(points);
    free(words);
}

static void look(ugo_table *table, uint64_t *random)
{
    ugo_table worlds[3];
    int done;
    if (table->is_over)
        return;
    if (ugo_worlds(table, table->asked, 3, next_random(random), worlds) != 1)
        abort();
    if (!table->is_laying && !(legal_cards(table) >> ugo_search(table, 60, 0, next_random(random), &done) & 1))
        abort();
    if (!table->is_laying)
        count_deals(table, random);
}

static void play_matches(int seats, uint64_t *random)
{
    uint8_t *deals = malloc(TABLES * 4 * CARDS), *mask = malloc(TABLES * ACTIONS);
    int8_t *seen = malloc(TABLES * MOST_SIZE);
    ugo_table *tables = malloc(sizeof *tables * TABLES);
    int64_t actions[TABLES];
    int size = 112 + 183 * seats, live = 1;
    for (int number = 0; number < TABLES * 4; number++)
        shuffle_deal(deals + number * CARDS, random);
    ugo_deal(tables, TABLES, seats, 4, deals);
    for (int turn = 0; live; turn++) {
        ugo_mask(tables, TABLES, mask);
        ugo_observe(tables, TABLES, turn % 2 ? -1 : 0, size, seen);
        look(tables + turn % TABLES, random);
        ugo_random_actions(tables, TABLES, actions, random);
        if (ugo_step(tables, TABLES, actions, deals) != -1)
            abort();
        live = 0;
        for (int number = 0; number < TABLES; number++)
            live |= !tables[number].is_over;
    }
    free(deals);
    free(mask);
    free(seen);
    free(tables);
}

int main(int count, char **arguments)
{
    uint64_t random = 1;
    int matches = count > 1 ? atoi(arguments[1]) : TABLES;
    ugo_prepare();
    for (int played = 0; played < matches; played += TABLES)
        play_matches(2 + played / TABLES % 3, &random);
    printf("%d matches\n", matches);
    return 0;
}
