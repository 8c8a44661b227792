package media

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"seckill/internal/platform/fault"
)

// serveTimeout bounds the read of one picture from the store.
const serveTimeout = 10 * time.Second

// uploadTimeout bounds an upload from the header to the response. The server's own
// timeouts are for small requests of anonymous clients; 8 MB over 1 Mbit/s take 67 s.
const uploadTimeout = 90 * time.Second

// Handler serves pictures below Path without authorisation. A POST to Path with the
// bytes of a picture stores it when authorise returns nil; the response is {"url": …}.
func (s *Service) Handler(authorise func(*http.Request) error, log *slog.Logger) http.Handler {
	h := handler{service: s, authorise: authorise, log: log}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"{name}", h.get)
	mux.HandleFunc("POST "+Path+"{$}", h.post)
	return mux
}

type handler struct {
	service   *Service
	authorise func(*http.Request) error
	log       *slog.Logger
}

func (h handler) get(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if !nameFormat.MatchString(name) {
		http.NotFound(w, r)
		return
	}
	tag := `"` + name[:strings.IndexByte(name, '.')] + `"`
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), serveTimeout)
	defer cancel()
	body, err := h.service.store.Get(ctx, name)
	if err != nil {
		w.Header().Del("Cache-Control")
		w.Header().Del("ETag")
		if errors.Is(err, ErrNotFound) {
			http.NotFound(w, r)
			return
		}
		h.log.WarnContext(ctx, "picture", slog.String("name", name), slog.Any("error", err))
		http.Error(w, "The picture cannot be read now.", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) //nolint:gosec // a picture that was decoded and encoded again, with its own type; an error means that the client has gone
}

func (h handler) post(w http.ResponseWriter, r *http.Request) {
	if err := h.authorise(r); err != nil {
		h.fault(w, r, err)
		return
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "image/") {
		http.Error(w, "Send the bytes of a picture, with its type.", http.StatusUnsupportedMediaType)
		return
	}
	patience(w)
	address, err := h.service.Save(r.Context(), http.MaxBytesReader(w, r.Body, MaxBytes+1))
	if bad, ok := errors.AsType[fault.BadField](err); ok {
		answer(w, http.StatusUnprocessableEntity, map[string]any{"code": bad.Reason(), "rule": bad.Rule.String()})
		return
	}
	if err != nil {
		h.fault(w, r, err)
		return
	}
	w.Header().Set("Location", address)
	answer(w, http.StatusCreated, map[string]any{"url": address})
}

// patience extends the deadlines of an authorised upload. A writer without deadlines is
// left unchanged.
func patience(w http.ResponseWriter) {
	rc, until := http.NewResponseController(w), time.Now().Add(uploadTimeout)
	_ = rc.SetReadDeadline(until)
	_ = rc.SetWriteDeadline(until)
}

func (h handler) fault(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	switch fault.CodeOf(err) {
	case fault.Unauthenticated:
		status = http.StatusUnauthorized
	case fault.Forbidden:
		status = http.StatusForbidden
	case fault.BadInput:
		status = http.StatusBadRequest
	case fault.Unavailable, fault.Overloaded, fault.Timeout:
		status = http.StatusServiceUnavailable
	case fault.NotFound, fault.RateLimited, fault.Internal:
	}
	if status >= http.StatusInternalServerError {
		h.log.ErrorContext(r.Context(), "upload", slog.Any("error", err))
	}
	answer(w, status, map[string]any{"code": fault.CodeOf(err)})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
