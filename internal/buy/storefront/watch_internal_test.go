package storefront

import (
	"testing"

	"github.com/google/uuid"

	"seckill/internal/platform/id"
)

func TestTheStateOfASnapshotIsNoChangeAfterIt(t *testing.T) {
	t.Parallel()
	var levels numbered
	sale := id.Sale(uuid.New())
	if revision := levels.begin(sale, "PLENTY"); revision != 1 {
		t.Errorf("the first state has revision %d, want 1", revision)
	}
	if revision, changed := levels.note(sale, "PLENTY"); changed || revision != 1 {
		t.Errorf("the state of the snapshot: revision %d, changed %t", revision, changed)
	}
	if revision, changed := levels.note(sale, "SOLD_OUT"); !changed || revision != 2 {
		t.Errorf("a change: revision %d, changed %t", revision, changed)
	}
	if revision := levels.begin(sale, "PLENTY"); revision != 0 {
		t.Errorf("begin after a change returned %d, so that the change would not be sent", revision)
	}
}

func TestStatesOfSalesThatLeftTheCatalogueAreForgotten(t *testing.T) {
	t.Parallel()
	var phases numbered
	stays, leaves := id.Sale(uuid.New()), id.Sale(uuid.New())
	phases.note(stays, "LIVE")
	last, _ := phases.note(leaves, "LIVE")
	phases.keep(func(sale id.Sale) bool { return sale == stays })
	if len(phases.known) != 1 || phases.read(leaves) != 0 {
		t.Errorf("%d sales are known", len(phases.known))
	}
	if _, changed := phases.note(stays, "LIVE"); changed {
		t.Error("a sale that stays in the catalogue has a new state")
	}
	if revision, changed := phases.note(leaves, "ENDED"); !changed || revision <= last {
		t.Errorf("a sale that is seen again has revision %d after %d: its followers would not receive it", revision, last)
	}
}
