package notice_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func (e *env) visit(method, path, language string) (int, string) {
	e.Helper()
	req := httptest.NewRequestWithContext(e.Context(), method, path, strings.NewReader("List-Unsubscribe=One-Click"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept-Language", language)
	w := httptest.NewRecorder()
	e.notices.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

func TestTheLinkOfAnEMailEndsItsKindWithoutASignIn(t *testing.T) {
	onBoth(t, func(e *env) {
		e.order()
		e.has(e.step(), ": pay by ")
		m := e.last()
		link, ok := strings.CutPrefix(strings.TrimSuffix(m.Header.Get("List-Unsubscribe"), ">"), "<"+shop)
		if !ok || m.Header.Get("List-Unsubscribe-Post") != "List-Unsubscribe=One-Click" || !strings.Contains(m.Plain, shop+link) ||
			!strings.Contains(m.HTML, `<a href="`+shop+link+`">`) {
			e.Fatalf("headers %v", m.Header)
		}
		// Programs that check links open them: that changes nothing.
		if code, page := e.visit(http.MethodGet, link, "en"); code != http.StatusOK || !strings.Contains(page, "Stop e-mails about new orders?") {
			e.Errorf("%d %s", code, page)
		}
		e.must(e.db.Ent.Order.Update().SetStatus("CANCELLED").Exec(e.Context()))
		e.order()
		e.has(e.step(), ": pay by ")
		for range 2 {
			if code, page := e.visit(http.MethodPost, link, "zh-CN,zh"); code != http.StatusOK || !strings.Contains(page, "已退订：下单通知") {
				e.Errorf("%d %s", code, page)
			}
		}
		e.must(e.db.Ent.Order.Update().SetStatus("CANCELLED").Exec(e.Context()))
		e.order()
		e.has(e.step(), "")
		e.clock.Advance(window - ahead)
		e.has(e.step(), "left to pay") // another kind
	})
}

func TestAForgedLinkEndsNothing(t *testing.T) {
	onBoth(t, func(e *env) {
		e.order()
		e.step()
		link, _ := strings.CutPrefix(strings.Trim(e.last().Header.Get("List-Unsubscribe"), "<>"), shop)
		first := "A"
		if strings.HasPrefix(link, "/unsubscribe/A") {
			first = "B"
		}
		for _, path := range []string{"/unsubscribe/", "/unsubscribe/x", "/unsubscribe/%20", link[:len(link)-4], "/unsubscribe/" + first + link[len("/unsubscribe/")+1:]} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				if code, _ := e.visit(method, path, "en"); code != http.StatusNotFound {
					e.Errorf("%s %s: %d", method, path, code)
				}
			}
		}
		if code, _ := e.visit(http.MethodPut, link, "en"); code != http.StatusMethodNotAllowed {
			e.Errorf("PUT: %d", code)
		}
		if n, err := e.db.Ent.NoticeChoice.Query().Count(e.Context()); err != nil || n > 0 {
			e.Errorf("%d choices, %v", n, err)
		}
	})
}
