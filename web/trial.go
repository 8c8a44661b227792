package web

import (
	"fmt"
	"io/fs"
	"strings"
)

// trialBanner is on every page while orders can be paid without money. It is in the
// HTML, so it shows even if no script runs.
const trialBanner = `<p class="note text-center" role="note">Trial: no money moves, and nothing is delivered. <span lang="zh-CN">试运行：付款不会真实扣款，也不会发货。</span></p>
    `

// frame is the element of index.html that the shop renders into.
const frame = `<div id="app">`

// Trial returns the built files with the banner on every page.
func Trial() fs.FS { return edited{FS: Dist(), edits: []edit{{old: frame, now: trialBanner + frame}}} }

// edited are built files that differ from the built ones.
type edited struct {
	fs.FS
	files map[string][]byte // instead of the built ones
	edits []edit            // of the page
}

// edit replaces a text of the page.
type edit struct{ old, now string }

// ReadFile implements fs.ReadFileFS.
func (e edited) ReadFile(name string) ([]byte, error) {
	if body, ok := e.files[name]; ok {
		return body, nil
	}
	body, err := fs.ReadFile(e.FS, name)
	if err != nil || name != "index.html" {
		return body, err // of the embedded files
	}
	text := string(body)
	for _, each := range e.edits {
		if !strings.Contains(text, each.old) {
			return nil, fmt.Errorf("web: index.html has no %s", each.old)
		}
		text = strings.Replace(text, each.old, each.now, 1)
	}
	return []byte(text), nil
}
