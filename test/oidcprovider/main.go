// Command oidcprovider is a real OpenID provider for journeys through the shop, with the
// users of its library's example. It prints its issuer, reads the addresses of
// callbacks from a line of standard input, and serves until standard input ends.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	issuer := "http://localhost:" + port
	fmt.Fprintln(out, issuer)
	lines := bufio.NewReader(in)
	callbacks, err := lines.ReadString('\n')
	if err != nil {
		return fmt.Errorf("read the addresses of callbacks: %w", err)
	}
	client := storage.WebClient("shop", "secret", strings.Fields(callbacks)...)
	store := storage.NewStorageWithClients(storage.NewUserStore(issuer),
		map[string]*storage.Client{client.GetID(): client})
	server := &http.Server{
		Handler:           exampleop.SetupServer(issuer, store, slog.New(slog.DiscardHandler), false),
		ReadHeaderTimeout: 5 * time.Second,
	}
	go func() { _ = server.Serve(listener) }() // it ends with the process
	_, err = io.Copy(io.Discard, lines)
	return err
}
