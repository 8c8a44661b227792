package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/saletemplate"
	"seckill/internal/buy/sale"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// MaxTemplates bounds the templates of an installation, so that all are one list.
const MaxTemplates = 100

// Template is a sale without its times, from which operators create drafts.
type Template struct {
	ID      id.Template
	Name    string
	Draft   SaleDraft // without times
	Lasts   time.Duration
	SavedBy id.User
	SavedAt time.Time
}

// content is a template in Postgres.
type content struct {
	Draft SaleDraft
	Lasts time.Duration
}

// Templates returns the templates, by name.
func (s *Service) Templates(ctx context.Context) ([]*Template, error) {
	rows, err := s.cfg.DB.Ent.SaleTemplate.Query().Order(ent.Asc(saletemplate.FieldName)).Limit(MaxTemplates).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	list := make([]*Template, len(rows))
	for i, row := range rows {
		if list[i], err = templateFromRow(row); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func templateFromRow(row *ent.SaleTemplate) (*Template, error) {
	var c content
	if err := json.Unmarshal([]byte(row.Content), &c); err != nil {
		return nil, fmt.Errorf("read template %s: %w", row.ID, err)
	}
	return &Template{ID: row.ID, Name: row.Name, Draft: c.Draft, Lasts: c.Lasts, SavedBy: row.SavedBy,
		SavedAt: row.SavedAt.UTC()}, nil
}

// SaveTemplate saves a sale as a template, in place of the one with the same name.
// Refusals: NOT_FOUND, INVALID_INPUT; CONFLICT when there are MaxTemplates others.
func (s *Service) SaveTemplate(ctx context.Context, by sale.Actor, saleID id.Sale, name string) (*Template, error) {
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	if err := line(&name, "name"); err != nil {
		return nil, err
	}
	v, err := s.cfg.Sales.ByID(ctx, saleID)
	if err != nil {
		return nil, err
	}
	if v == nil {
		return nil, unknown("saleId")
	}
	t := &Template{
		ID: id.Template(s.cfg.NewID()), Name: name, Draft: copyOf(v, CopyInput{}), Lasts: v.EndsAt.Sub(v.StartsAt),
		SavedBy: by.ID, SavedAt: s.cfg.Clock.Now().UTC(),
	}
	text, err := json.Marshal(content{t.Draft, t.Lasts})
	if err != nil {
		return nil, fmt.Errorf("write template %q: %w", name, err)
	}
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		before, err := tx.SaleTemplate.Query().Where(saletemplate.Name(name)).Only(ctx)
		if err == nil {
			t.ID = before.ID
			return tx.SaleTemplate.UpdateOneID(t.ID).SetContent(string(text)).SetSavedBy(t.SavedBy).SetSavedAt(t.SavedAt).
				Exec(ctx)
		}
		if !ent.IsNotFound(err) {
			return err
		}
		if n, err := tx.SaleTemplate.Query().Count(ctx); err != nil || n >= MaxTemplates {
			return errors.Join(err, conflict("name"))
		}
		return tx.SaleTemplate.Create().SetID(t.ID).SetName(name).SetContent(string(text)).SetSavedBy(t.SavedBy).
			SetSavedAt(t.SavedAt).Exec(ctx)
	})
	switch {
	case postgres.IsUnique(err): // saved by another operator at the same time
		return nil, conflict("name")
	case err != nil:
		return nil, unknownOutcome(err)
	}
	return t, nil
}

// FromTemplate is what a template does not say about a sale.
type FromTemplate struct {
	Template id.Template
	Title    string // "" = that of the saved sale
	StartsAt time.Time
	EndsAt   time.Time // zero = as long after the start as in the saved sale
}

// CreateFromTemplate creates a draft from a template. Refusals are those of CreateSale;
// faults of the saved items have the path of the item in the input of createSale.
func (s *Service) CreateFromTemplate(ctx context.Context, by sale.Actor, in FromTemplate) (*sale.Sale, error) {
	if err := authorise(by, sale.ActCreate); err != nil {
		return nil, err
	}
	row, err := s.cfg.DB.Ent.SaleTemplate.Get(ctx, in.Template)
	if ent.IsNotFound(err) {
		return nil, unknown("templateId")
	}
	if err != nil {
		return nil, fmt.Errorf("read template %s: %w", in.Template, err)
	}
	t, err := templateFromRow(row)
	if err != nil {
		return nil, err
	}
	d := t.Draft
	if in.Title != "" {
		d.Title = in.Title
	}
	d.StartsAt, d.EndsAt = in.StartsAt, in.EndsAt
	if d.EndsAt.IsZero() {
		d.EndsAt = d.StartsAt.Add(t.Lasts)
	}
	return s.CreateSale(ctx, by, d)
}

// DeleteTemplate deletes a template and returns it as it was.
func (s *Service) DeleteTemplate(ctx context.Context, by sale.Actor, templateID id.Template) (*Template, error) {
	if err := requireStaff(by); err != nil {
		return nil, err
	}
	var row *ent.SaleTemplate
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
		if row, err = tx.SaleTemplate.Get(ctx, templateID); err != nil {
			return err
		}
		return tx.SaleTemplate.DeleteOneID(templateID).Exec(ctx)
	})
	switch {
	case ent.IsNotFound(err):
		return nil, unknown("templateId")
	case err != nil:
		return nil, unknownOutcome(err)
	}
	return templateFromRow(row)
}
