package web

import (
	"bytes"
	"fmt"
	"io/fs"
)

// trialBanner is on every page while orders can be paid without money. It is part of the
// document, so that no script can fail to show it.
const trialBanner = `<p class="note text-center" role="note">Trial: no money moves, and nothing is delivered. <span lang="zh-CN">试运行：付款不会真实扣款，也不会发货。</span></p>
    `

// frame is the element of index.html that the shop renders into.
const frame = `<div id="app">`

// Trial returns the built files with the banner on every page.
func Trial() fs.FS { return trial{Dist()} }

type trial struct{ fs.FS }

// ReadFile implements fs.ReadFileFS.
func (t trial) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(t.FS, name)
	if err != nil || name != "index.html" {
		return text, err //nolint:wrapcheck // of the embedded files
	}
	if !bytes.Contains(text, []byte(frame)) {
		return nil, fmt.Errorf("web: index.html has no %s", frame)
	}
	return bytes.Replace(text, []byte(frame), []byte(trialBanner+frame), 1), nil
}
