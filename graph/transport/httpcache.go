package transport

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// sharedLife is the Cache-Control header of shareable responses: any cache may keep them
// for one second, the maximum age of the data they are built from.
const sharedLife = "public, max-age=1, s-maxage=1"

// shareable reports whether a response is the same for all anonymous users, so that a CDN
// may cache it: a successful query by GET that selects only root fields in Shared.
func (h *Handler) shareable(r *http.Request, op *graphql.OperationContext, resp *graphql.Response) bool {
	if r.Method != http.MethodGet || r.Header.Get("Authorization") != "" || len(h.opts.Shared) == 0 ||
		resp == nil || len(resp.Errors) > 0 || op.Operation.Operation != ast.Query {
		return false
	}
	return h.allShared(op.Operation.SelectionSet)
}

func (h *Handler) allShared(set ast.SelectionSet) bool {
	for _, selection := range set {
		switch s := selection.(type) {
		case *ast.Field:
			if s.Name != "__typename" && !slices.Contains(h.opts.Shared, s.Name) {
				return false
			}
		case *ast.InlineFragment:
			if !h.allShared(s.SelectionSet) {
				return false
			}
		case *ast.FragmentSpread:
			if !h.allShared(s.Definition.SelectionSet) {
				return false
			}
		}
	}
	return true
}

// writeShared writes a response with cache headers, and 304 to a client that has the same
// one. It omits the cost, because the budget differs per caller.
func writeShared(w http.ResponseWriter, r *http.Request, kind mediaType, resp *graphql.Response) {
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = appendReply((*buf)[:0], reply{Response: resp})
	sum := sha256.Sum256(*buf)
	tag := `W/"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	head := w.Header()
	head.Set("Cache-Control", sharedLife)
	head.Add("Vary", "Accept, Accept-Language, Authorization")
	head.Set("ETag", tag)
	if sameTag(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	head["Content-Type"] = contentTypes[kind]
	head.Set("Content-Length", strconv.Itoa(len(*buf)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(*buf) // the client may have disconnected
}

// sameTag compares with weak comparison, as required for If-None-Match (RFC 9110
// §13.1.2).
func sameTag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
