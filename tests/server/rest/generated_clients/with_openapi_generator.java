import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.BotServiceApi;
import org.openapitools.client.api.MatchServiceApi;
import org.openapitools.client.model.CreateMatchRequest;
import org.openapitools.client.model.Match;
import org.openapitools.client.model.RegisterBotRequest;

public class Main {
    public static void main(String[] args) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(args[0]);
        client.setRequestInterceptor(request -> request.header("Authorization", "Bearer " + args[1]));
        MatchServiceApi matches = new MatchServiceApi(client);
        String bot = new BotServiceApi(client).registerBot(new RegisterBotRequest().bot("made-by-java")).getBot().getName();
        CreateMatchRequest asked = new CreateMatchRequest().game("games/ugo").bots(List.of(bot, args[2]));
        String name = matches.createMatch(asked).getMatch().getName();
        Match read = matches.getMatch(name.replace("matches/", ""), null).getMatch();
        System.out.println("created " + read.getState() + " " + String.join(" ", read.getBots()));
        System.out.println("finished " + matches.watchMatch(args[3], null).getMatch().getState());
    }
}
