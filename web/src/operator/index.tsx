/** The admin pages, fetched when an operator opens one. */
import type { ComponentChildren } from 'preact';
import { Link, Route, Switch, useLocation } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { currentUser } from '../api/session';
import { Account } from '../documents/account';
import { count, loadTexts, t } from '../i18n/text';
import { NotFound, Title } from '../ui/bits';
import { Deferred } from '../ui/later';
import { useTitle } from '../ui/title';
import { AskedNote } from './asked';
import { useInboxCount } from './inbox-count';
import { pages } from './pages';
import { ot, textsOf, type OpKey } from './texts';

/** Adds the texts of the admin pages. */
export const prepare = (): Promise<void> => loadTexts(textsOf);

/** The pages under /operate. */
export function Operator() {
  useTitle(ot('op.title'));
  const [where] = useLocation();
  if (!currentUser.value || currentUser.value.role === 'CUSTOMER') {
    return (
      <div class="page">
        <Title>{ot('op.denied')}</Title>
        {!currentUser.value && (
          <Link class="link mt-4 inline-block" href={`/sign-in?next=${encodeURIComponent(where)}`}>
            {t('nav.signIn')}
          </Link>
        )}
      </div>
    );
  }
  return (
    <div class="page grid max-w-7xl items-start gap-6 lg:grid-cols-[11rem_minmax(0,1fr)] lg:gap-8">
      <Nav />
      <div class="min-w-0">
        <Deferred>
          <NeedsCodes />
        </Deferred>
        <AskedNote />
        <Switch>
          {Object.entries(pages).map(([path, Page]) => (
            <Route key={path} path={path}>
              {(params: Partial<Record<string, string>>) => <Page key={params['id']} id={params['id'] ?? ''} />}
            </Route>
          ))}
          <Route component={NotFound} />
        </Switch>
      </div>
    </div>
  );
}

/** Leads staff to the account page when the installation requires one-time codes. */
function NeedsCodes() {
  const { page } = useLoad('account', async (signal) => (await request(Account, {}, signal)).viewer);
  if (page.value.state !== 'ready' || page.value.data.grantedRole !== 'CUSTOMER') return null;
  return (
    <p class="note mb-4 font-medium text-warn" role="status">
      {ot('op.needsCodes')}{' '}
      <Link class="link" href="/account">
        {ot('op.setUpCodes')}
      </Link>
    </p>
  );
}

/** The navigation: a column on a desktop, a row that scrolls on a phone. */
function Nav() {
  const waiting = useInboxCount();
  const [where] = useLocation();
  const link = (href: string, text: ComponentChildren, here = where.startsWith(href)) => (
    <Link
      href={href}
      aria-current={here ? 'page' : undefined}
      class="inline-flex min-h-11 items-center justify-between gap-2 rounded-xl px-3 font-medium whitespace-nowrap hover:bg-sunk aria-[current]:bg-sunk aria-[current]:font-semibold"
    >
      {text}
    </Link>
  );
  return (
    <nav aria-label={ot('op.tabs')} class="-mx-4 flex gap-1 overflow-x-auto px-4 pb-1 lg:sticky lg:top-16 lg:mx-0 lg:grid lg:px-0 print:hidden">
      {link('/operate', ot('op.home'), where === '/operate')}
      {link('/operate/inbox', <Counted name="op.inbox" n={waiting} />)}
      {link('/operate/sales', ot('op.sales'), where.startsWith('/operate/sales') || where === '/operate/new')}
      {link('/operate/orders', ot('op.orders'))}
      {link('/operate/goods', ot('op.goods'))}
      {link('/operate/refunds', ot('op.refunds'))}
      {link('/operate/aside', ot('op.aside'))}
      {link('/operate/people', ot('op.people'))}
      {currentUser.value?.role === 'ADMIN' && link('/operate/webhooks', ot('op.hooks'))}
      {currentUser.value?.role === 'ADMIN' && link('/operate/tokens', ot('op.tokens'))}
    </nav>
  );
}

/** A name in the navigation with the number of what waits there. */
function Counted({ name, n }: { name: OpKey; n: number }) {
  return (
    <>
      {ot(name)}
      {n > 0 && <span class="rounded-full bg-danger px-2 text-sm text-page tabular-nums">{count(n)}</span>}
    </>
  );
}
