package operator

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"seckill/internal/buy/sale"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
)

// ExportPath is the download URL of a sale's orders: ?sale=<public id>.
const ExportPath = "/exports/orders.csv"

// writeDeadline is the timeout of one write of a download.
const writeDeadline = 30 * time.Second

// Downloads serves exports to operators. authenticate returns the user of a request; its
// error is a fault.
func (s *Service) Downloads(authenticate func(*http.Request) (sale.Actor, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+ExportPath, func(w http.ResponseWriter, r *http.Request) {
		by, err := authenticate(r)
		if err != nil {
			s.refuse(w, r, err)
			return
		}
		saleID, err := id.ParseSale(r.URL.Query().Get("sale"))
		if err != nil {
			http.Error(w, "There is no such sale.", http.StatusNotFound)
			return
		}
		export, err := s.ExportOrders(r.Context(), by, saleID)
		switch {
		case fault.ReasonOf(err) == fault.Unknown:
			http.Error(w, "There is no such sale.", http.StatusNotFound)
		case err != nil:
			s.refuse(w, r, err)
		default:
			s.send(w, r, export)
		}
	})
	mux.HandleFunc("GET "+CodesExportPath, func(w http.ResponseWriter, r *http.Request) {
		by, err := authenticate(r)
		if err == nil {
			err = s.downloadCodes(w, r, by)
		}
		switch {
		case fault.ReasonOf(err) == fault.Unknown:
			http.Error(w, "There are no such codes.", http.StatusNotFound)
		case err != nil:
			s.refuse(w, r, err)
		}
	})
	return mux
}

// send streams an export. After an error the connection is aborted, so that a partial
// file is not taken for a complete one.
func (s *Service) send(w http.ResponseWriter, r *http.Request, export *Export) {
	headers(w, export.Name())
	_, err := export.CSV(r.Context(), deadlineWriter{w})
	s.brokeOff(r.Context(), err)
}

// headers makes a response the download of a CSV file.
func headers(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+name+`"`)
	w.Header().Set("Cache-Control", "no-store")
}

// brokeOff aborts a download after an error.
func (s *Service) brokeOff(ctx context.Context, err error) {
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "export broke off", slog.Any("error", err))
		panic(http.ErrAbortHandler)
	}
}

// deadlineWriter sets a deadline for each write, independent of the total duration.
type deadlineWriter struct{ w http.ResponseWriter }

func (p deadlineWriter) Write(b []byte) (int, error) {
	err := http.NewResponseController(p.w).SetWriteDeadline(time.Now().Add(writeDeadline))
	if err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return p.w.Write(b)
}

func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error) {
	switch fault.CodeOf(err) {
	case fault.Unauthenticated:
		http.Error(w, "Please sign in first.", http.StatusUnauthorized)
	case fault.Forbidden:
		http.Error(w, "Your role may not do this.", http.StatusForbidden)
	default:
		s.cfg.Log.ErrorContext(r.Context(), "export", slog.Any("error", err))
		http.Error(w, "The orders cannot be read now.", http.StatusServiceUnavailable)
	}
}
