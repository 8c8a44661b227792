package server

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"seckill/web"
)

// encoding is one encoding of a file, ready to send.
type encoding struct {
	name string // value of Content-Encoding; "" = uncompressed
	body []byte
	etag string // strong, of this encoding
}

// file is a static file with its compressed encodings, best first; the uncompressed one
// is last.
type file struct {
	contentType string
	encodings   []encoding
}

// files are static files in memory, compressed once.
type files struct {
	byPath  map[string]*file
	version string
}

// loadFiles reads a tree. Files ending in .br or .gz are encodings of the file with that
// name; a file without .gz is compressed here.
func loadFiles(tree fs.FS, version string) (*files, error) {
	raw := map[string][]byte{}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw[name], err = fs.ReadFile(tree, name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("static files: %w", err)
	}
	out := &files{byPath: map[string]*file{}, version: version}
	for name, body := range raw {
		base, packed := strings.CutSuffix(name, ".gz")
		if _, plain := raw[base]; packed && !plain {
			// only the compressed form was committed
			if body, err = unpack(body); err != nil {
				return nil, fmt.Errorf("static file %s: %w", name, err)
			}
			raw[base+".gz"] = raw[name]
			out.byPath[base] = newFile(base, body, raw)
			continue
		}
		if packed || strings.HasSuffix(name, ".br") {
			continue
		}
		out.byPath[name] = newFile(name, body, raw)
	}
	return out, nil
}

func newFile(name string, plain []byte, raw map[string][]byte) *file {
	f := &file{contentType: contentType(name)}
	if br, ok := raw[name+".br"]; ok {
		f.encodings = append(f.encodings, newEncoding("br", br))
	}
	packed, ok := raw[name+".gz"]
	if !ok && compressible(f.contentType) {
		packed = pack(plain)
		ok = len(packed) < len(plain)*9/10
	}
	if ok {
		f.encodings = append(f.encodings, newEncoding("gzip", packed))
	}
	f.encodings = append(f.encodings, newEncoding("", plain))
	return f
}

func newEncoding(name string, body []byte) encoding {
	sum := sha256.Sum256(body)
	return encoding{name: name, body: body, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}

func contentType(name string) string {
	switch path.Ext(name) {
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".html":
		return "text/html; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".woff2":
		return "font/woff2"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	if t := mime.TypeByExtension(path.Ext(name)); t != "" {
		return t
	}
	return "application/octet-stream"
}

func compressible(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") || strings.Contains(contentType, "json") ||
		strings.Contains(contentType, "svg")
}

func pack(plain []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(plain)                                 // writing to memory does not fail
	_ = w.Close()
	return b.Bytes()
}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// serve responds with a file in the best encoding that the client accepts.
func (fl *files) serve(w http.ResponseWriter, r *http.Request, f *file) { fl.servePage(w, r, f, true) }

// servePage is serve with the status 404 where the page does not exist: it then says so.
func (fl *files) servePage(w http.ResponseWriter, r *http.Request, f *file, exists bool) {
	h := w.Header()
	e := f.pick(r.Header.Get("Accept-Encoding"))
	h.Set("Content-Type", f.contentType)
	h.Set("ETag", e.etag)
	h.Add("Vary", "Accept-Encoding")
	if fl.version != "" && r.URL.Query().Get("v") == fl.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		h.Set("Cache-Control", "no-cache")
	}
	if exists && matches(r.Header.Get("If-None-Match"), e.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if e.name != "" {
		h.Set("Content-Encoding", e.name)
	}
	h.Set("Content-Length", strconv.Itoa(len(e.body)))
	status := http.StatusOK
	if !exists {
		status = http.StatusNotFound
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(e.body) // the client may have disconnected
	}
}

// pick returns the first encoding that the client accepts.
func (f *file) pick(accept string) encoding {
	var taken []string
	for part := range strings.SplitSeq(accept, ",") {
		name, q, _ := strings.Cut(strings.TrimSpace(part), ";")
		if q = strings.ReplaceAll(q, " ", ""); q != "q=0" && q != "q=0.0" {
			taken = append(taken, name)
		}
	}
	for _, e := range f.encodings[:len(f.encodings)-1] {
		if slices.Contains(taken, e.name) {
			return e
		}
	}
	return f.encodings[len(f.encodings)-1]
}

func matches(ifNoneMatch, etag string) bool {
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == etag || tag == "*" {
			return true
		}
	}
	return false
}

// NewSite serves a shop: the files of a tree with index.html, read and compressed now.
// version is the v parameter of references between them: a file requested with it may be
// cached without expiry.
func NewSite(tree fs.FS, version string) (http.Handler, error) {
	files, err := loadFiles(tree, version)
	if err != nil {
		return nil, err
	}
	if files.byPath["index.html"] == nil {
		return nil, errors.New("shop: index.html is missing")
	}
	return &spa{files: files}, nil
}

// spa serves a single-page application: its files, and index.html for each path that is a
// page.
type spa struct{ files *files }

// ServeHTTP implements http.Handler.
func (s *spa) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if f := s.files.byPath[name]; f != nil {
		if strings.HasPrefix(name, forOthers) && w.Header().Get("Access-Control-Allow-Origin") == "" {
			w.Header().Set("Access-Control-Allow-Origin", "*") // a module is loaded by CORS
		}
		s.files.serve(w, r, f)
		return
	}
	if !isPage(name) {
		http.Error(w, "Not found.", http.StatusNotFound)
		return
	}
	s.files.servePage(w, r, s.files.byPath["index.html"], web.HasPage("/"+name))
}

// forOthers begins the paths of files that pages of other origins load.
const forOthers = "client/"

// reserved are first path segments that are never pages of the shop.
var reserved = []string{"assets", "client", "graphql", "playground", "webhooks", "media", "exports", "healthz", "readyz",
	"metrics", "debug", ".well-known"}

// isPage reports whether a path may be a page: it names no file and is not reserved.
func isPage(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return path.Ext(name) == "" && !slices.Contains(reserved, first)
}
