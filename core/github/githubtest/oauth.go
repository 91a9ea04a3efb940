package githubtest

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// browserCookie remembers who signed in here; the product's cookie has another name, because
// cookies ignore ports.
const browserCookie = "standin_github_login"

// Lives of what sign-in gives out, as GitHub's.
const (
	codeLife    = 10 * time.Minute
	userLife    = 8 * time.Hour
	refreshLife = 184 * 24 * time.Hour
	browserLife = 30 * 24 * time.Hour
)

// authorizeRequest is what the App asks of a person.
type authorizeRequest struct {
	RedirectURI, State, Challenge string
}

// readAuthorize checks the request before anything is sent to its redirect address. problem is what
// to show instead, "" when it is sound.
func (s *Server) readAuthorize(v url.Values) (ask authorizeRequest, problem string) {
	to, err := url.Parse(v.Get("redirect_uri"))
	switch {
	case v.Get("client_id") != s.Config().ClientID:
		return ask, "There is no App with this client id."
	case err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" || to.User != nil:
		return ask, "The redirect_uri is not associated with this application."
	case v.Get("code_challenge") != "" && v.Get("code_challenge_method") != "S256":
		return ask, "Only the code_challenge_method S256 is supported."
	}
	return authorizeRequest{RedirectURI: v.Get("redirect_uri"), State: v.Get("state"), Challenge: v.Get("code_challenge")}, ""
}

func (s *Server) authorizePage(w http.ResponseWriter, r *http.Request) {
	ask, problem := s.readAuthorize(r.URL.Query())
	if problem != "" {
		render(w, http.StatusBadRequest, "problem", problem)
		return
	}
	render(w, http.StatusOK, "authorize", struct {
		Ask      authorizeRequest
		ClientID string
		AppSlug  string
		Host     string
		Current  string
		People   []personOnPage
	}{ask, s.Config().ClientID, s.Config().AppSlug, hostOf(ask.RedirectURI), s.signedIn(r), s.peopleOnPage()})
}

type personOnPage struct{ Login, Name, Initial, About string }

// peopleOnPage says what each person reaches, so that one can choose on purpose.
func (s *Server) peopleOnPage() []personOnPage {
	var all []personOnPage
	for _, a := range s.people() {
		push, pull := 0, 0
		for _, in := range s.installations() {
			for _, repo := range s.installed(in) {
				if !s.given(a.Login, repo) {
					continue
				}
				pull++
				if s.permissionOf(a.Login, repo).rank() >= Push.rank() {
					push++
				}
			}
		}
		about := "reaches no repository"
		if pull > 0 {
			about = "can read " + plural(pull) + ", push to " + strconv.Itoa(push)
		}
		all = append(all, personOnPage{Login: a.Login, Name: a.Name, Initial: initial(a.Login), About: about})
	}
	return all
}

// initial is the letter that stands for a login: of its last part, as demo-admin and demo-owner begin alike.
func initial(login string) string {
	last := login[strings.LastIndex(login, "-")+1:]
	if last == "" {
		last = login
	}
	return last[:1]
}

func plural(n int) string {
	if n == 1 {
		return "1 repository"
	}
	return strconv.Itoa(n) + " repositories"
}

// authorize ends the page: a code for the chosen person, or access_denied.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		render(w, http.StatusBadRequest, "problem", "The form could not be read.")
		return
	}
	ask, problem := s.readAuthorize(r.PostForm)
	if problem != "" {
		render(w, http.StatusBadRequest, "problem", problem)
		return
	}
	back := url.Values{"state": {ask.State}}
	login := r.PostForm.Get("login")
	i := slices.IndexFunc(s.people(), func(a account) bool { return a.Login == login })
	switch {
	case r.PostForm.Get("deny") != "":
		back.Set("error", "access_denied")
		back.Set("error_description", "The user has denied your application access.")
	case i < 0:
		render(w, http.StatusBadRequest, "problem", "There is nobody of that name here.")
		return
	default:
		code, cookie := randomText(20), randomText(32)
		err := s.update(func(*state) error {
			s.addToken(code, token{Kind: kindCode, Login: login, ExpiresAt: s.now().Add(codeLife), RedirectURI: ask.RedirectURI, Challenge: ask.Challenge})
			s.addToken(cookie, token{Kind: kindBrowser, Login: login, ExpiresAt: s.now().Add(browserLife)})
			return nil
		})
		if err != nil {
			s.log.ErrorContext(r.Context(), "stand-in state not written", "error", err)
			render(w, http.StatusInternalServerError, "problem", "The stand-in could not write its state.")
			return
		}
		http.SetCookie(w, &http.Cookie{Name: browserCookie, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(browserLife.Seconds())})
		back.Set("code", code)
	}
	http.Redirect(w, r, withQuery(ask.RedirectURI, back), http.StatusFound)
}

// signedIn is the login of the browser's last sign-in, "" when there is none.
func (s *Server) signedIn(r *http.Request) string {
	c, err := r.Cookie(browserCookie)
	if err != nil {
		return ""
	}
	t, _ := s.liveToken(c.Value, kindBrowser)
	return t.Login
}

// accessToken exchanges a code or a refresh token. As GitHub's, it answers 200 even to refuse, and
// form-encoded unless JSON is asked for.
func (s *Server) accessToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	f, cfg := r.PostForm, s.Config()
	if f.Get("client_id") != cfg.ClientID || subtle.ConstantTimeCompare([]byte(f.Get("client_secret")), []byte(cfg.ClientSecret)) != 1 {
		oauthReply(w, r, url.Values{"error": {"incorrect_client_credentials"}, "error_description": {"The client_id and/or client_secret passed are incorrect."}})
		return
	}
	var spent token
	var ok bool
	refused := url.Values{"error": {"bad_verification_code"}, "error_description": {"The code passed is incorrect or expired."}}
	if f.Get("grant_type") == "refresh_token" {
		refused = url.Values{"error": {"bad_refresh_token"}, "error_description": {"The refresh token passed is incorrect or expired."}}
		spent, ok = s.liveToken(f.Get("refresh_token"), kindRefresh)
	} else {
		spent, ok = s.liveToken(f.Get("code"), kindCode)
		if ok && f.Get("redirect_uri") != "" && f.Get("redirect_uri") != spent.RedirectURI {
			refused = url.Values{"error": {"redirect_uri_mismatch"}, "error_description": {"The redirect_uri MUST match the registered callback URL for this application."}}
			ok = false
		}
		ok = ok && proves(f.Get("code_verifier"), spent.Challenge)
	}
	if !ok {
		oauthReply(w, r, refused)
		return
	}
	answer, err := s.grantUser(spent)
	if err != nil {
		s.log.ErrorContext(r.Context(), "stand-in state not written", "error", err)
		http.Error(w, "Server Error", http.StatusInternalServerError)
		return
	}
	if answer == nil {
		answer = refused
	}
	oauthReply(w, r, answer)
}

// proves checks PKCE: a code that was asked for with a challenge needs its verifier.
func proves(verifier, challenge string) bool {
	if challenge == "" {
		return true
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

// grantUser spends a code or a refresh token for a new pair; the old pair ends with it. It returns
// nil when somebody else spent it first.
func (s *Server) grantUser(spent token) (url.Values, error) {
	access, refresh, pair := "ghu_"+randomText(36), "ghr_"+randomText(76), randomText(12)
	used := false
	err := s.update(func(st *state) error {
		used = !slices.ContainsFunc(st.Tokens, func(t token) bool { return t.Hash == spent.Hash })
		if used {
			return nil
		}
		st.Tokens = slices.DeleteFunc(st.Tokens, func(t token) bool {
			return t.Hash == spent.Hash || spent.Pair != "" && t.Pair == spent.Pair
		})
		s.addToken(access, token{Kind: kindUser, Login: spent.Login, Pair: pair, ExpiresAt: s.now().Add(userLife)})
		s.addToken(refresh, token{Kind: kindRefresh, Login: spent.Login, Pair: pair, ExpiresAt: s.now().Add(refreshLife)})
		return nil
	})
	if err != nil || used {
		return nil, err
	}
	return url.Values{
		"access_token": {access}, "expires_in": {strconv.Itoa(int(userLife.Seconds()))},
		"refresh_token": {refresh}, "refresh_token_expires_in": {strconv.Itoa(int(refreshLife.Seconds()))},
		"scope": {""}, "token_type": {"bearer"},
	}, nil
}

func oauthReply(w http.ResponseWriter, r *http.Request, v url.Values) {
	w.Header().Set("Cache-Control", "no-store")
	if !strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		_, _ = w.Write([]byte(v.Encode()))
		return
	}
	body := object{}
	for k := range v {
		body[k] = v.Get(k)
		if n, err := strconv.Atoi(v.Get(k)); err == nil && strings.HasSuffix(k, "expires_in") {
			body[k] = n
		}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(body)
}

// withQuery adds v to an address that was checked before.
func withQuery(address string, v url.Values) string {
	u, err := url.Parse(address)
	if err != nil {
		return "/"
	}
	q := u.Query()
	for k, vs := range v {
		q[k] = vs
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
