package notice_test

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var encode = base64.RawURLEncoding.EncodeToString

// newKey returns a private key of P-256.
func newKey(t *testing.T) *ecdh.PrivateKey {
	t.Helper()
	key, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// browser is a browser, which decrypts what its push service gets for it (RFC 8291).
type browser struct {
	key    *ecdh.PrivateKey
	secret []byte
	path   string
}

func (b browser) open(body []byte) ([]byte, error) {
	const header = 16 + 4 + 1 + 65
	if len(body) < header || body[20] != 65 || int(binary.BigEndian.Uint32(body[16:])) < len(body) {
		return nil, fmt.Errorf("header of %d bytes", len(body))
	}
	salt, sender := body[:16], body[21:header]
	public, err := ecdh.P256().NewPublicKey(sender)
	if err != nil {
		return nil, err
	}
	shared, err := b.key.ECDH(public)
	if err != nil {
		return nil, err
	}
	derive := func(secret, salt []byte, info string, n int) []byte {
		out, derr := hkdf.Key(sha256.New, secret, salt, info, n)
		if derr != nil {
			err = derr
		}
		return out
	}
	ikm := derive(shared, b.secret, "WebPush: info\x00"+string(b.key.PublicKey().Bytes())+string(sender), 32)
	key, nonce := derive(ikm, salt, "Content-Encoding: aes128gcm\x00", 16), derive(ikm, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nonce, body[header:], nil)
	if err != nil {
		return nil, err
	}
	text := strings.TrimRight(string(plain), "\x00")
	if !strings.HasSuffix(text, "\x02") { // the last record
		return nil, fmt.Errorf("end of %q", text)
	}
	return []byte(text[:len(text)-1]), nil
}

// pushed is a message as a browser shows it, with the headers for the push service.
type pushed struct {
	Title, Body, Path, Tag, Language string
	header                           http.Header
}

// pushService is a push service with its browsers.
type pushService struct {
	*testing.T
	server *httptest.Server
	vapid  *ecdh.PrivateKey

	mu       sync.Mutex
	statuses []int // guarded by mu; of the next responses, 0 = none, then 201
	browsers map[string]browser
	messages []pushed
}

func (s *pushService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	if err := s.authorised(r.Header.Get("Authorization")); err != nil {
		s.Errorf("authorization %q: %v", r.Header.Get("Authorization"), err)
	}
	m := pushed{header: r.Header}
	plain, err := s.browsers[r.URL.Path].open(body)
	if err != nil || json.Unmarshal(plain, &m) != nil || r.Header.Get("Content-Encoding") != "aes128gcm" {
		s.Errorf("message %q: %v", plain, err)
	}
	status := http.StatusCreated
	if len(s.statuses) > 0 {
		status, s.statuses = s.statuses[0], s.statuses[1:]
	}
	s.messages = append(s.messages, m)
	if status == 0 {
		panic(http.ErrAbortHandler) // the connection is lost
	}
	w.WriteHeader(status)
}

// authorised checks the token of the shop (RFC 8292).
func (s *pushService) authorised(header string) error {
	token, key, ok := strings.Cut(strings.TrimPrefix(header, "vapid t="), ", k=")
	if public := s.vapid.PublicKey().Bytes(); !ok || key != encode(public) {
		return fmt.Errorf("the key is %q", key)
	}
	claims := jwt.RegisteredClaims{}
	_, err := jwt.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), s.vapid.PublicKey().Bytes())
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithAudience(s.server.URL), jwt.WithExpirationRequired(), jwt.WithSubject("mailto:ops@shop.example"))
	if err == nil && time.Until(claims.ExpiresAt.Time) > 24*time.Hour {
		err = fmt.Errorf("it expires at %s", claims.ExpiresAt)
	}
	return err
}
