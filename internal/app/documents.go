package app

import (
	"context"
	"time"

	"seckill/graph/guard"
	"seckill/internal/auth"
	"seckill/internal/config"
	"seckill/internal/periodic"
)

// documentsEvery is the pause between two checks of the manifests of trusted documents.
const documentsEvery = 5 * time.Second

// trustDocuments reads the manifests of SECKILL_TRUSTED_DOCUMENTS and returns the loop
// that reads them again after a change; nil without the setting. A manifest that does
// not fit is an error at the start. Later it is logged and the former documents stay.
func (a *App) trustDocuments(g *guard.Guard) (*periodic.Loop, error) {
	if a.cfg.TrustedDocuments == "" {
		return nil, nil
	}
	file := &guard.ManifestFile{Path: a.cfg.TrustedDocuments}
	read := func() (int, error) {
		documents, err := file.Read()
		if err != nil {
			return 0, err
		}
		return len(documents), g.Trust(documents)
	}
	if _, err := read(); err != nil {
		return nil, err
	}
	return &periodic.Loop{Name: "trusted documents", Every: documentsEvery, Log: a.log, Step: func(context.Context) (map[string]int, error) {
		if !file.Changed() {
			return nil, nil
		}
		n, err := read()
		return map[string]int{"documents": n}, err
	}}, nil
}

// mayIntrospect reports whether the caller may query the schema where not every caller
// may.
func (a *App) mayIntrospect(ctx context.Context) bool {
	p := auth.PrincipalFrom(ctx)
	return a.cfg.WhoIntrospects() == config.IntrospectionStaff && p != nil && p.Role.AtLeast(auth.Operator)
}
