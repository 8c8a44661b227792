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

// sharedLife is how long any cache may give an answer to others: as old as what it
// was made of may be.
const sharedLife = "public, max-age=1, s-maxage=1"

// shareable says whether an answer is the same for everybody who is not signed in,
// so that a CDN may carry it: a query by GET, of nothing but fields that Shared
// names, that went well.
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

// writeShared answers with what caches need, and with 304 to whoever has the same
// already. What the operation cost is not told: it is another for every caller.
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
	_, _ = w.Write(*buf) // the client may be gone; nobody is left to tell
}

// sameTag compares weakly, as If-None-Match does (RFC 9110 §13.1.2).
func sameTag(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		if one = strings.TrimSpace(one); one == "*" || strings.TrimPrefix(one, "W/") == strings.TrimPrefix(tag, "W/") {
			return true
		}
	}
	return false
}
