package media_test

import (
	"errors"
	"fmt"
	"testing"

	"seckill/internal/platform/media"
)

func TestAStoreInMemoryIsBoundedAndForgetsTheOldestPictures(t *testing.T) {
	t.Parallel()
	store := media.NewMemory()
	body := make([]byte, media.MaxBytes/2)
	const pictures = 12 // 48 MB
	for i := range pictures {
		if err := store.Put(t.Context(), fmt.Sprint(i), "image/png", body); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	for i := range pictures {
		switch _, err := store.Get(t.Context(), fmt.Sprint(i)); {
		case err == nil:
			kept++
		case !errors.Is(err, media.ErrNotFound):
			t.Fatal(err)
		case kept > 0:
			t.Errorf("picture %d is gone, an older one is not", i)
		}
	}
	if kept < 4 || kept > 8 {
		t.Errorf("%d pictures of 4 MB are kept", kept)
	}
}
