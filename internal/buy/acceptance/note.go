package acceptance

import (
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/MicahParks/jwkset"
	"golang.org/x/mod/sumdb/note"
)

// noteSigner signs notes of a log with the key of the receipts.
type noteSigner struct {
	note.Verifier

	private ed25519.PrivateKey
}

// Sign returns the signature of a note.
func (s noteSigner) Sign(text []byte) ([]byte, error) { return ed25519.Sign(s.private, text), nil }

// noteSigner returns the signer of the log with a name.
func (s *Signer) noteSigner(name string) (note.Signer, error) {
	public, _ := s.private.Public().(ed25519.PublicKey)
	v, err := noteVerifier(name, public)
	return noteSigner{v, s.private}, err
}

func noteVerifier(name string, key ed25519.PublicKey) (note.Verifier, error) {
	text, err := note.NewEd25519VerifierKey(name, key)
	if err != nil {
		return nil, fmt.Errorf("key of log %q: %w", name, err)
	}
	return note.NewVerifier(text)
}

// noteVerifiers returns the verifiers of the log with a name for the keys of a JSON Web Key
// Set.
func noteVerifiers(name string, keySet []byte) (note.Verifiers, error) {
	var set jwkset.JWKSMarshal
	if err := json.Unmarshal(keySet, &set); err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	keys, err := set.JWKSlice()
	if err != nil {
		return nil, fmt.Errorf("key set: %w", err)
	}
	var all []note.Verifier
	for _, key := range keys {
		if public, ok := key.Key().(ed25519.PublicKey); ok {
			v, err := noteVerifier(name, public)
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the key set has no Ed25519 key")
	}
	return note.VerifierList(all...), nil
}
