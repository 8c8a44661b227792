/** The frame of every page: header, routes, messages. */
import { useEffect, useRef } from 'preact/hooks';
import { Link, Route, Switch, useLocation } from 'wouter-preact';
import { currentUser, signOut } from './api/session';
import { lang } from './i18n/lang';
import { isolate, setLanguage, t } from './i18n/text';
import { preloadAdminPage } from './operator/pages';
import { Sales } from './pages/sales';
import { StatusBanner } from './purchase/strip';
import { LiveRegion } from './ui/live-region';
import { NotFound } from './ui/bits';
import { Mark } from './ui/brand';
import { useFocus, useKeptFocus } from './ui/focus';
import { Icon } from './ui/icons';
import { lazy } from './ui/lazy';
import { ConnectionStatus } from './ui/pill';
import { nextTheme, theme } from './ui/theme';
import { Toasts } from './ui/toast';

const SalePage = lazy(() => import('./pages/sale').then((module) => module.SalePage));
const Sign = lazy(() => import('./pages/sign').then((module) => module.Sign));
const AccountPage = lazy(() => import('./pages/account').then((module) => module.Account));
const Forgot = lazy(() => import('./pages/mail').then((module) => module.Forgot));
const Reset = lazy(() => import('./pages/mail').then((module) => module.Reset));
const VerifyEmail = lazy(() => import('./pages/mail').then((module) => module.VerifyEmail));
const Orders = lazy(() => import('./pages/orders').then((module) => module.Orders));
const EntryCardPage = lazy(() => import('./pages/entry-card').then((module) => module.EntryCardPage));
const PayPage = lazy(() => import('./pages/pay').then((module) => module.PayPage));
const OrderPage = lazy(() => import('./pages/orders').then((module) => module.OrderPage));

const Operator = lazy(() =>
  import('./operator').then(async (module) => {
    await module.prepare();
    return module.Operator;
  }),
);

/** Fetches the code of the page at an address. */
export function preloadPage(path: string): Promise<unknown> | void {
  if (path.startsWith('/s/')) return SalePage.preload();
  if (path.startsWith('/orders')) return Orders.preload();
  if (path === '/account') return AccountPage.preload();
  if (path.startsWith('/operate')) return Promise.all([Operator.preload(), preloadAdminPage(path)]);
  if (path === '/sign-in' || path === '/register') return Sign.preload();
}

const themeIcon = { system: 'half', light: 'sun', dark: 'moon' } as const;

/** How long the list is shown before the code of the page of a sale is fetched, in ms: its own requests come first. */
const PRELOAD_MS = 200;

/** The frame with the page for the current URL. */
export function App() {
  const [where] = useLocation();
  useFocus(where);
  useEffect(() => {
    if (where !== '/') return;
    const timer = setTimeout(() => void SalePage.preload(), PRELOAD_MS);
    return () => clearTimeout(timer);
  }, [where]);
  useKeptFocus();
  return (
    <>
      <a href="#main" class="btn btn-main sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:px-4 focus:py-2">
        {t('app.skip')}
      </a>
      <Header where={where} />
      <StatusBanner />
      <main id="main" tabIndex={-1} class="outline-none">
        <Switch>
          <Route path="/">{() => <Sales />}</Route>
          <Route path="/s/:slug/card">{({ slug }) => <EntryCardPage slug={slug} />}</Route>
          <Route path="/s/:slug">{({ slug }) => <SalePage key={slug} slug={slug} />}</Route>
          <Route path="/sign-in">{() => <Sign isNew={false} />}</Route>
          <Route path="/register">{() => <Sign isNew />}</Route>
          <Route path="/forgot-password">{() => <Forgot />}</Route>
          <Route path="/reset-password">{() => <Reset />}</Route>
          <Route path="/verify-email">{() => <VerifyEmail />}</Route>
          <Route path="/account">{() => <AccountPage />}</Route>
          <Route path="/orders">{() => <Orders />}</Route>
          <Route path="/operate/*?">{() => <Operator />}</Route>
          <Route path="/orders/:id/pay">{({ id }) => <PayPage key={id} id={id} />}</Route>
          <Route path="/orders/:id">{({ id }) => <OrderPage key={id} id={id} />}</Route>
          <Route>
            <div class="page">
              <NotFound />
            </div>
          </Route>
        </Switch>
      </main>
      {!where.startsWith('/s/') && <Footer where={where} />}
      <Toasts />
      <LiveRegion />
    </>
  );
}

function Header({ where }: { where: string }) {
  const tab = (href: string, here: boolean, text: string) => (
    <Link
      href={href}
      aria-current={here ? 'page' : undefined}
      class="inline-flex min-h-12 items-center border-b-2 border-transparent px-2 text-sm font-medium whitespace-nowrap hover:border-edge sm:px-3 aria-[current]:border-ink aria-[current]:font-semibold"
    >
      {text}
    </Link>
  );
  const staff = currentUser.value !== null && currentUser.value.role !== 'CUSTOMER';
  return (
    <header class="z-20 sm:sticky sm:top-0 border-b border-line bg-card print:hidden">
      <div class={`mx-auto flex flex-wrap items-center gap-x-1 px-3 sm:px-4 ${where.startsWith('/operate') ? 'max-w-7xl' : 'max-w-5xl'}`}>
        <Link href="/" class="flex min-h-12 shrink-0 items-center gap-2 pr-1 font-extrabold tracking-tight">
          <Mark />
        </Link>
        <nav aria-label={t('nav.main')} class={`flex min-w-28 grow basis-0 overflow-x-auto ${staff ? 'max-[24rem]:order-last max-[24rem]:basis-full' : 'max-[22rem]:order-last max-[22rem]:basis-full'}`}>
          {tab('/', where === '/' || where.startsWith('/s/'), t('nav.sales'))}
          {tab('/orders', where.startsWith('/orders'), t('nav.orders'))}
          {staff && tab('/operate', where.startsWith('/operate'), t('nav.operator'))}
        </nav>
        <div class="ml-auto flex shrink-0 items-center">
          <ConnectionStatus />
          <button
            class="icon-btn text-sm font-semibold"
            aria-label={t('app.languageLabel')}
            lang={lang.value === 'zh' ? 'en' : 'zh-CN'}
            onClick={() => void setLanguage(lang.value === 'zh' ? 'en' : 'zh')}
          >
            {lang.value === 'zh' ? 'EN' : '中'}
          </button>
          <Account where={where} />
        </div>
      </div>
    </header>
  );
}

/** The footer with the theme switch; sale pages have none. */
function Footer({ where }: { where: string }) {
  return (
    <footer class={`page flex justify-end ${where.startsWith('/operate') ? 'max-w-7xl' : ''} py-4 max-lg:pb-8 print:hidden`}>
      <button class="btn border-transparent bg-transparent text-sm text-soft" onClick={nextTheme}>
        <Icon name={themeIcon[theme.value]} size={16} />
        {t('app.theme', { theme: t(`app.theme.${theme.value}`) })}
      </button>
    </footer>
  );
}

function Account({ where }: { where: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (menu.current) menu.current.open = false;
  }, [where, currentUser.value]);
  if (!currentUser.value) {
    const next = where.startsWith('/sign-in') || where.startsWith('/register') ? '' : `?next=${encodeURIComponent(where + location.search)}`;
    return (
      <Link href={`/sign-in${next}`} class="btn min-h-9 px-3 py-1.5 text-sm whitespace-nowrap">
        {t('nav.signIn')}
      </Link>
    );
  }
  return (
    <details
      ref={menu}
      class="relative"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        menu.current!.open = false;
        menu.current!.querySelector('summary')!.focus();
      }}
    >
      <summary class="icon-btn list-none [&::-webkit-details-marker]:hidden" aria-label={`${t('nav.account')}: ${isolate(currentUser.value.displayName)}`}>
        <Icon name="person" />
      </summary>
      <div class="card rise absolute right-0 z-30 grid w-56 gap-1 p-2 shadow-xl">
        <p class="px-3 py-2 font-semibold"><bdi>{currentUser.value.displayName}</bdi></p>
        <Link href="/account" class="rounded-lg px-3 py-2 hover:bg-sunk">
          {t('account.title')}
        </Link>
        <button class="rounded-lg px-3 py-2 text-left hover:bg-sunk" onClick={() => void signOut(false)}>
          {t('nav.signOut')}
        </button>
        <button class="rounded-lg px-3 py-2 text-left hover:bg-sunk" onClick={() => void signOut(true)}>
          {t('nav.signOutAll')}
        </button>
      </div>
    </details>
  );
}
