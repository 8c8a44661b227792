package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
)

// Client sends requests to an address of a setting, by the rules of endpoints:
// to no address inside of the installation, and without following redirects.
type Client struct{ target target }

// NewClient returns a Client. networks are private networks that are allowed; when there
// are any, addresses may use http.
func NewClient(networks []netip.Prefix) Client { return Client{newTarget(networks)} }

// Check refuses an address that no request can be sent to. at names its origin.
func (c Client) Check(address string, at []string) error {
	err := c.target.check(address)
	if bad, ok := errors.AsType[fault.BadField](err); ok {
		return fault.BadField{At: at, Rule: bad.Rule}
	}
	return err
}

// Post sends a request and returns the status code; 0 if there was no response. A status
// other than 2xx is an error.
func (c Client) Post(ctx context.Context, address string, header http.Header, body []byte) (int, error) {
	return c.target.post(ctx, address, header, body)
}

// Signer signs requests as Standard Webhooks defines.
type Signer struct{ signer *standardwebhooks.Webhook }

// NewSigner returns a Signer with a secret of the form whsec_ and base64.
func NewSigner(secret string) (Signer, error) {
	signer, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		return Signer{}, fmt.Errorf("secret of signed requests: %w", err)
	}
	return Signer{signer}, nil
}

// Header returns the header of a request with a body.
func (s Signer) Header(message string, now time.Time, body []byte) (http.Header, error) {
	return signedHeader([]*standardwebhooks.Webhook{s.signer}, message, now, body)
}

// signedHeader returns the header of a request, with a signature of each signer.
func signedHeader(signers []*standardwebhooks.Webhook, message string, now time.Time, body []byte) (http.Header,
	error) {
	signatures := make([]string, len(signers))
	for i, signer := range signers {
		signature, err := signer.Sign(message, now, body)
		if err != nil {
			return nil, fmt.Errorf("sign message %s: %w", message, err)
		}
		signatures[i] = signature
	}
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", userAgent)
	header.Set(standardwebhooks.HeaderWebhookID, message)
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return header, nil
}

const (
	// AttemptTimeout bounds one request, from the name lookup to the end of the response.
	AttemptTimeout = 10 * time.Second
	// maxResponse bounds what is read of a response in bytes, so that the connection can be
	// used again; the rest is not needed.
	maxResponse = 64 << 10
	// maxURL bounds the address of an endpoint in bytes.
	maxURL = 1024
)

// errPrivate reports an address that events are not sent to.
var errPrivate = errors.New("the address is not public: SECKILL_WEBHOOK_NETWORKS allows private networks")

// reserved are networks that are not public, beyond those that netip recognises: the
// special-purpose address registries of IANA (RFC 6890), without what is outside of
// globalIPv6 anyway.
var reserved = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24",
	"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
	"2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
)

// globalIPv6 is all that is assigned for public use.
var globalIPv6 = netip.MustParsePrefix("2000::/3")

func prefixes(texts ...string) []netip.Prefix {
	return collect.Map(texts, netip.MustParsePrefix)
}

// target sends requests to endpoints, and to no address inside of the installation.
type target struct {
	networks []netip.Prefix // private networks that are allowed
	client   *http.Client
}

func newTarget(networks []netip.Prefix) target {
	t := target{networks: networks}
	dialer := net.Dialer{
		Timeout: AttemptTimeout,
		// Control runs after the name was resolved, for each address that is tried: a name
		// cannot lead to another address than the one that was checked.
		Control: func(_, address string, _ syscall.RawConn) error { return t.allows(address) },
	}
	t.client = &http.Client{
		Timeout: AttemptTimeout,
		Transport: &http.Transport{
			Proxy:       nil, // a proxy would resolve the name itself
			DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: AttemptTimeout,
			MaxIdleConnsPerHost: parallel, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: maxResponse,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return t
}

// allows returns an error unless requests may be sent to an address.
func (t target) allows(address string) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("address %q: %w", address, err)
	}
	ip := addr.Addr().Unmap().WithZone("")
	contains := func(n netip.Prefix) bool { return n.Contains(ip) }
	if slices.ContainsFunc(t.networks, contains) {
		return nil
	}
	if !ip.IsGlobalUnicast() || ip.IsPrivate() || ip.Is6() && !globalIPv6.Contains(ip) ||
		slices.ContainsFunc(reserved, contains) {
		return errPrivate
	}
	return nil
}

// check refuses an address that no event can be sent to. A name is not resolved: what it
// leads to is checked with each request.
func (t target) check(text string) error {
	at := []string{"url"}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Hostname() == "" || len(text) > maxURL:
		return fault.BadField{At: at, Rule: fault.Rule{Code: "absolute URL"}}
	case u.User != nil || u.Fragment != "":
		return fault.BadField{At: at, Rule: fault.Rule{Code: "no user and no fragment"}}
	case u.Scheme != "https" && (u.Scheme != "http" || len(t.networks) == 0):
		return fault.BadField{At: at, Rule: fault.Rule{Code: "https"}}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && t.allows(netip.AddrPortFrom(ip, 0).String()) != nil {
		return fault.BadField{At: at, Rule: fault.Rule{Code: "public address"}}
	}
	return nil
}

// post sends a request and returns the status code; 0 if there was no response.
func (t target) post(ctx context.Context, address string, header http.Header, body []byte) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, AttemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("address of the endpoint: %w", err)
	}
	req.Header = header
	resp, err := t.client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the address, which may have a token
		}
		return 0, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxResponse)) // the status is known
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return resp.StatusCode, fmt.Errorf("status %d", resp.StatusCode)
	}
	return resp.StatusCode, nil
}
