package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"seckill/internal/platform/config"
)

// The scripts call the binary itself for the candidates, so that they always match its
// version.
const (
	bashScript = `# bash completion of seckill; put it into /etc/bash_completion.d or source it
_seckill() {
  COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _seckill seckill
`
	zshScript = `#compdef seckill
# zsh completion of seckill; put it into a directory of $fpath as _seckill
_seckill() {
  local -a next
  next=(${(f)"$(${words[1]} __complete ${words[2,CURRENT-1]} 2>/dev/null)"})
  compadd -a next || _files
}
compdef _seckill seckill
`
	fishScript = `# fish completion of seckill; put it into ~/.config/fish/completions/seckill.fish
complete -c seckill -f -a '(set -l words (commandline -opc); $words[1] __complete $words[2..-1] 2>/dev/null)'
`
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return examples(
		"source <(seckill completion bash)",
		"seckill completion zsh > ~/.zfunc/_seckill",
		"seckill completion fish > ~/.config/fish/completions/seckill.fish",
	)
}

func (k completionCmd) Run(c *call) error {
	script := map[string]string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[k.Shell]
	_, err := fmt.Fprint(c.env.stdout, script)
	return err
}

type completeCmd struct {
	Words []string `arg:"" optional:""`
}

// Run prints the candidates for the next word, one per line.
func (k completeCmd) Run(c *call) error {
	for _, candidate := range candidates(c.kong.Model.Node, k.Words) {
		if _, err := fmt.Fprintln(c.env.stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// valuesOf lists the values of flags that have few.
var valuesOf = map[string][]string{
	"profile":    {string(config.ProfileProduction), string(config.ProfileDevelopment)},
	"log-format": {string(config.LogAuto), string(config.LogJSON), string(config.LogText)},
	"log-level":  {"debug", "info", "warn", "error"},
	"limits":     {string(config.SwitchOn), string(config.SwitchOff)},
	"roles":      roles,
	"role":       {"customer", "operator", "admin"},
}

// candidates follows the words through the commands and returns the candidates for the
// next one.
func candidates(node *kong.Node, words []string) []string {
	if len(words) > 0 {
		if flag, ok := strings.CutPrefix(words[len(words)-1], "--"); ok && takesValue(node, words, flag) {
			return valuesOf[flag]
		}
	}
	for _, word := range words {
		if child := childOf(node, word); child != nil {
			node = child
		}
	}
	var list []string
	for _, child := range node.Children {
		if !child.Hidden {
			list = append(list, child.Name)
		}
	}
	if len(list) == 0 {
		for _, arg := range node.Positional {
			list = append(list, arg.EnumSlice()...)
		}
	}
	for _, flags := range node.AllFlags(true) {
		for _, flag := range flags {
			list = append(list, "--"+flag.Name)
		}
	}
	return list
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name && !child.Hidden {
			return child
		}
	}
	return nil
}

// takesValue reports whether a flag of the command named by words is followed by a value.
func takesValue(node *kong.Node, words []string, name string) bool {
	for _, word := range words {
		if child := childOf(node, word); child != nil {
			node = child
		}
	}
	for _, flags := range node.AllFlags(false) {
		for _, flag := range flags {
			if flag.Name == name {
				return !flag.IsBool()
			}
		}
	}
	return false
}
