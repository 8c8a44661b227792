package account

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"

	"seckill/ent/user"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/spreadsheet"
)

// hashes are hashes of goodPassword as other systems write them.
func hashes(t *testing.T) map[string]string {
	t.Helper()
	bc, err := bcrypt.GenerateFromPassword([]byte(goodPassword), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	argon, err := HashPassword(goodPassword)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(goodPassword))
	ofSum, err := bcrypt.GenerateFromPassword([]byte(hex.EncodeToString(sum[:])), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	salt := []byte("seasaltseasalt16")
	raw := base64.RawStdEncoding.EncodeToString
	return map[string]string{
		// As Django, Spring Security, and PHP write them.
		"django-argon@example.com":  "argon2" + argon,
		"django-argoni@example.com": "argon2$argon2i$v=19$m=512,t=2,p=2$" + raw(salt) + "$" + raw(argon2.Key([]byte(goodPassword), salt, 2, 512, 2, 16)),
		"django-bcrypt@example.com": "bcrypt$" + string(bc),
		"django-sum@example.com":    "bcrypt_sha256$" + string(ofSum),
		"spring@example.com":        "{bcrypt}" + string(bc),
		"php@example.com":           strings.Replace(string(bc), "$2a$", "$2y$", 1),

		"bcrypt@example.com": string(bc),
		"argon@example.com":  argon,
		"pbkdf2@example.com": "pbkdf2_sha256$1000$seasalt$DrdiWD40lyBuydnjvZiDrdQMx1S1mOA9O0QYex0R6ww=",
		"old@example.com":    "pbkdf2_sha1$1000$seasalt$LPTbYn9/9ALjztx0Dtq5V+DLYLg=",
		"scrypt@example.com": "scrypt$1024$seasalt$8$5$ZPrjhuL1dTuhxIFFj1avSf7m1XRGd92Yd0HHF99NCBMJo39ZS0qduEMDnlPUmD0+/G7SHDkbPZrz62u7VtT6Xg==",
	}
}

func TestImportedPasswordsWorkAndAreHashedAgain(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		file := "account,passwordHash\n"
		all := hashes(t)
		for account, hash := range all {
			file += account + `,"` + hash + `"` + "\n" // a hash may have commas
		}
		done, err := f.store.Import(t.Context(), Import{Rows: strings.NewReader(file)})
		if err != nil || done.Created != len(all) {
			t.Fatalf("%+v, %v", done, err)
		}
		for account := range all {
			if _, err := f.Login(t.Context(), LoginInput{Account: account, Password: "not the password"}); fault.ReasonOf(err) != fault.InvalidCredentials {
				t.Errorf("%s, wrong password: %v", account, err)
			}
			f.login(account, goodPassword)
			_, hash, err := f.store.byAccount(t.Context(), account)
			if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=256,t=1,p=1$") {
				t.Errorf("%s: the hash is %.30s, %v", account, hash, err)
			}
			f.login(account, goodPassword)
		}
	})
}

// Django writes ! for users without a password, Unix * as well. They choose one by e-mail.
func TestUsersWithoutAPasswordAreImportedWithoutOne(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		file := "account,passwordHash\ndjango@example.com,!Hy7fKPzyYtd1wCfDn6VvAtDcxLXFVpPTS4kbAqG1\nunix@example.com,*\n"
		done, err := f.store.Import(t.Context(), Import{Rows: strings.NewReader(file)})
		if err != nil || done.Created != 2 {
			t.Fatalf("%+v, %v", done, err)
		}
		if _, hash, err := f.store.byAccount(t.Context(), "django@example.com"); err != nil || hash != "" {
			t.Errorf("the hash is %q, %v", hash, err)
		}
	})
}

func TestAnImportCanBeRepeatedAndSaysWhatItLeftOut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		taken := f.register(someone()).User.Account
		file := "account,displayName,externalId,passwordHash,verified,language,createdAt\n" +
			"Ann@Example.com,Ann,c-1,,true,en,2024-05-01T00:00:00Z\n" +
			"+8613800138000,,c-2,,,zh,\n" +
			taken + ",Other,c-3,,,,\n" + // 4: exists
			"ann@example.com,Twice,c-4,,,,\n" + // 5: twice
			"bob@example.com,Bob,c-1,,,,\n" + // 6: external id twice
			"not an account,,,,,,\n" + // 7: no account
			"eve@example.com,,,md5$abc,,,\n" + // 8: unknown hash
			"eve@example.com,,,$2a$31$0123456789012345678901uuuuuuuuuuuuuuuuuuuuuuuuuuuuuuu,,,\n" + // 9: cost
			"eve@example.com,,,,maybe,,\n" + // 10
			"eve@example.com,,,,,,2999-01-01T00:00:00Z\n" // 11
		var lines []string
		run := func(dry bool) Imported {
			t.Helper()
			lines = nil
			done, err := f.store.Import(t.Context(), Import{Rows: strings.NewReader(file), DryRun: dry, Problem: func(line int, why string) {
				lines = append(lines, fmt.Sprint(line))
			}})
			if err != nil {
				t.Fatal(err)
			}
			return done
		}
		before := f.users()
		want := Imported{Rows: 10, Created: 2, Duplicates: 3, Invalid: 5}
		if done := run(true); done != want || f.users() != before {
			t.Errorf("dry run: %+v, %d users more", done, f.users()-before)
		}
		if done := run(false); done != want || len(lines) != 8 || f.users() != before+2 {
			t.Errorf("%+v, lines %v, %d users more", done, lines, f.users()-before)
		}
		if done := run(false); done != (Imported{Rows: 10, Duplicates: 5, Invalid: 5}) {
			t.Errorf("repeated: %+v", done)
		}
		ann, err := f.db.Ent.User.Query().Where(user.ExternalID("c-1")).Only(t.Context())
		if err != nil || ann.Account != "ann@example.com" || ann.DisplayName != "Ann" || ann.VerifiedAt == nil || ann.CreatedAt.Year() != 2024 || ann.Language != "en" {
			t.Errorf("Ann is %+v, %v", ann, err)
		}
		for name, header := range map[string]string{"unknown column": "account,role\n", "no account": "displayName\n", "nothing": ""} {
			if _, err := f.store.Import(t.Context(), Import{Rows: strings.NewReader(header)}); err == nil {
				t.Errorf("%s: no error", name)
			}
		}
	})
}

// A dry run and an import check the same rows, to the end of the file.
func TestAnImportChecksEachRowByItself(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		file := "\ufeff\"account\";\"displayName\"\r\n" +
			"one@example.com;One\r\n" +
			"two@example.com\r\n" + // 3: short
			"three@example.com;\"Three\r\n" + // 4: a quote stays open
			"four@example.com;\xc4\xe3\r\n" + // 5: not UTF-8
			"five@example.com;\x00\r\n" + // 6: Postgres refuses it
			spreadsheet.Safe("+8613800138000") + ";" + spreadsheet.Safe("=Six") + "\r\n" // as an export has it
		for _, dry := range []bool{true, false} {
			var lines []int
			done, err := f.store.Import(t.Context(), Import{Rows: strings.NewReader(file), DryRun: dry, Problem: func(line int, _ string) {
				lines = append(lines, line)
			}})
			if err != nil || done != (Imported{Rows: 6, Created: 2, Invalid: 4}) || !slices.Equal(lines, []int{3, 4, 5, 6}) {
				t.Errorf("dry %t: %+v, lines %v, %v", dry, done, lines, err)
			}
		}
		six, err := f.db.Ent.User.Query().Where(user.Account("+8613800138000")).Only(t.Context())
		if err != nil || six.DisplayName != "=Six" {
			t.Errorf("the row of an export is %+v, %v", six, err)
		}
	})
}

// customers is a file of n rows that is written while it is read.
func customers(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		_, err := io.WriteString(w, "account,externalId\n")
		for i := 0; i < n && err == nil; i++ {
			_, err = fmt.Fprintf(w, "c%d@example.com,c-%d\n", i, i)
		}
		_ = w.CloseWithError(err)
	}()
	return r
}

func TestAnImportWritesWhileItReads(t *testing.T) {
	t.Parallel()
	f := real(t)
	const rows = 4 * importBatch
	var seen []int
	done, err := f.store.Import(t.Context(), Import{Rows: customers(rows), Progress: func(done Imported) {
		if f.users() != done.Created {
			t.Errorf("%d users are stored after %+v", f.users(), done)
		}
		seen = append(seen, done.Rows)
	}})
	if err != nil || done.Created != rows || len(seen) < 4 || seen[0] != importBatch {
		t.Errorf("%+v, progress %v, %v", done, seen, err)
	}
}
