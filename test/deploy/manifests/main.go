// Command manifests validates the manifests in deploy/, without a cluster or a container
// engine:
//
//	manifests kubernetes < rendered.yaml   every object decodes strictly into its type of the Kubernetes API
//	manifests compose FILE                 the file is valid by the Compose specification
//
// It is a separate module, because the product needs none of these libraries.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manifests:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 1 && args[0] == "kubernetes":
		return kubernetes(os.Stdin)
	case len(args) == 2 && args[0] == "compose":
		return compose(args[1])
	}
	return fmt.Errorf("want `kubernetes` or `compose FILE`")
}

// kubernetes decodes each document of a stream; an unknown kind or field is an error.
func kubernetes(in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	for i, document := range bytes.Split(text, []byte("\n---\n")) {
		if len(bytes.TrimSpace(withoutComments(document))) == 0 {
			continue
		}
		if _, kind, err := decoder.Decode(document, nil, nil); err != nil {
			return fmt.Errorf("document %d (%v): %w", i, kind, err)
		}
		checked++
	}
	if checked == 0 {
		return fmt.Errorf("no objects")
	}
	fmt.Println(checked, "Kubernetes objects are valid")
	return nil
}

func withoutComments(document []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(document) {
		if trimmed := bytes.TrimSpace(line); !bytes.HasPrefix(trimmed, []byte("#")) && !bytes.Equal(trimmed, []byte("---")) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// compose loads a Compose file as docker compose does.
func compose(path string) error {
	options, err := cli.NewProjectOptions([]string{path}, cli.WithOsEnv, cli.WithResolvedPaths(false))
	if err != nil {
		return err
	}
	project, err := options.LoadProject(context.Background())
	if err != nil {
		return err
	}
	fmt.Println(len(project.Services), "Compose services are valid")
	return nil
}
