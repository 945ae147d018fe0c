package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"

	"seatwise.example/client/api"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func item(line []byte) (it api.WatchMatchAnswer) {
	if err := json.Unmarshal(line, &it); err != nil {
		panic(err)
	}
	return it
}

func main() {
	base, token, other, finished, live := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
	client := must(api.NewClientWithResponses(base, api.WithRequestEditorFn(authorize)))
	registered := must(client.RegisterBotWithResponse(ctx, api.RegisterBotRequest{Bot: "made-by-go"})).JSON200
	asked := api.CreateMatchRequest{Game: "games/ugo", Bots: []string{registered.Bot.Name, other}}
	created := must(client.CreateMatchWithResponse(ctx, asked)).JSON200
	id := strings.TrimPrefix(created.Match.Name, "matches/")
	read := must(client.GetMatchWithResponse(ctx, id, &api.GetMatchParams{})).JSON200
	fmt.Println("created", read.Match.State, strings.Join(read.Match.Bots, " "))
	watched := must(client.WatchMatchWithResponse(ctx, finished, &api.WatchMatchParams{}))
	first, _, _ := bytes.Cut(watched.Body, []byte("\n"))
	fmt.Println("finished", item(first).Match.State)
	stream := must(client.ClientInterface.WatchMatch(ctx, live, &api.WatchMatchParams{}))
	scanner := bufio.NewScanner(stream.Body)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		if it := item(scanner.Bytes()); it.Match != nil {
			fmt.Println("live", it.Match.State)
		}
	}
}
