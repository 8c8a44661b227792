package storefront

import (
	"testing"

	"github.com/google/uuid"
)

func TestTheStateOfASnapshotIsNoChangeAfterIt(t *testing.T) {
	t.Parallel()
	var levels numbered
	sale := uuid.New()
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
