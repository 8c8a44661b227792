package account

import (
	_ "embed"
	"strings"
	"unicode"
)

//go:embed common_passwords.txt
var commonPasswordsText string

// commonWords is the embedded list of words that must not be the whole password.
var commonWords = func() map[string]bool {
	words := map[string]bool{}
	for line := range strings.Lines(commonPasswordsText) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			words[line] = true
		}
	}
	return words
}()

// minDistinct is the minimum number of different characters in a password.
const minDistinct = 5

// keyRows are the character sequences that sequence looks for, in both directions.
var keyRows = []string{"01234567890123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiop", "asdfghjkl", "zxcvbnm"}

// leet reverses common substitutions of letters.
var leet = strings.NewReplacer("@", "a", "4", "a", "3", "e", "1", "i", "0", "o", "$", "s", "5", "s", "7", "t")

// common reports whether a password is easy to guess: few different characters, a
// repeated substring, a keyboard row, a common word with digits, or the account name with
// digits.
func common(password, account string) bool {
	password = strings.ToLower(password)
	distinct := map[rune]bool{}
	for _, r := range password {
		distinct[r] = true
	}
	if len(distinct) < minDistinct || sequence(password) {
		return true
	}
	name, _, _ := strings.Cut(account, "@")
	for _, text := range []string{password, leet.Replace(password)} {
		letters := strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) {
				return r
			}
			return -1
		}, text)
		if word := repeated(letters); commonWords[word] || word == name {
			return true
		}
	}
	piece := repeated(password)
	return len(piece) < len(password) && len(piece) < minPassword
}

// sequence reports whether the text is part of one of keyRows.
func sequence(text string) bool {
	for _, row := range keyRows {
		if strings.Contains(row, text) || strings.Contains(reversed(row), text) {
			return true
		}
	}
	return false
}

func reversed(text string) string {
	out := []byte(text)
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return string(out)
}

// repeated returns the shortest substring whose repetition is the text; the text itself
// if there is none.
func repeated(text string) string {
	for n := 1; n <= len(text)/2; n++ {
		if len(text)%n == 0 && strings.Repeat(text[:n], len(text)/n) == text {
			return text[:n]
		}
	}
	return text
}
