/** Accounts: search, the orders of one, and for administrators roles, sign-in and sessions. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import { currentUser, type User } from '../api/session';
import type { ResultOf, VariablesOf } from '@seckill/client/operation';
import type { Failure } from '@seckill/client/types';
import { SearchUsers } from '../documents/operator';
import { DisableUser, EnableUser, EndUserSessions, SetUserRole, Users } from '../documents/users';
import { count } from '../i18n/text';
import { Title, Unready } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { Select, type Choice } from '../ui/select';
import { Field, Form, Note, type Values } from './form';
import { Paged } from './paged';
import { Search, useQuery } from './search';
import { ot } from './texts';

const SHORTEST_SEARCH = 2;
const ROLES = ['CUSTOMER', 'OPERATOR', 'ADMIN'] as const;
/** Most accounts that the API finds for an operator. */
const MOST_FOUND = 50;

const roles = (): Choice[] => ROLES.map((each) => ({ value: each, label: ot(`op.role.${each}`) }));

type Listed = NonNullable<ResultOf<typeof Users>['users']>['edges'][number]['node'];
type Role = User['role'];

export function People() {
  const [text, setText] = useQuery('q');
  const admin = currentUser.value?.role === 'ADMIN';
  return (
    <>
      <div class="mb-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.people')}</Title>
        <Search label={ot('op.searchPeople')} text={text} found={setText} shortest={admin ? 0 : SHORTEST_SEARCH} />
      </div>
      {admin ? <All text={text} /> : text.length >= SHORTEST_SEARCH ? <Found key={text} text={text} /> : <p class="note">{ot('op.searchFirst')}</p>}
    </>
  );
}

/** What an operator finds. */
function Found({ text }: { text: string }) {
  const { page, reload } = useLoad(`people ${text}`, async (signal) => (await request(SearchUsers, { text }, signal)).searchUsers);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<p class="note">{ot('op.none')}</p>} />;
  if (!page.value.data.length) return <p class="note">{ot('op.none')}</p>;
  return (
    <>
      <ul class="grid gap-2">
        {page.value.data.map((user) => (
          <Row key={user.id} user={user} />
        ))}
      </ul>
      {page.value.data.length >= MOST_FOUND && <p class="note mt-4">{ot('op.searchMore', { n: count(MOST_FOUND) })}</p>}
    </>
  );
}

/** All accounts, for administrators. */
function All({ text }: { text: string }) {
  const [asked, setRole] = useQuery('role');
  const role = ROLES.find((each) => each === asked) ?? '';
  const [state, setState] = useQuery('state');
  const chosen = useSignal<Listed | null>(null);
  const filter: Omit<VariablesOf<typeof Users>, 'after'> = {
    search: text || null,
    role: role || null,
    disabled: state === 'disabled' ? true : null,
  };
  return (
    <>
      <div class="mb-4 flex flex-wrap gap-3">
        <Select class="w-auto" label={ot('op.role')} value={role} none={ot('op.role.all')} change={setRole} choices={roles()} />
        <label class="flex items-center gap-2">
          <input type="checkbox" class="size-4 accent-ink" checked={state === 'disabled'} onChange={() => setState(state ? '' : 'disabled')} />
          {ot('op.user.onlyDisabled')}
        </label>
      </div>
      <Paged name={`users ${text} ${role} ${state}`} ask={async (after, signal) => (await request(Users, { after, ...filter }, signal)).users}>
        {(users, reload) => (
          <>
            <ul class="grid gap-2">
              {users.map((user) => (
                <Row key={user.id} user={user} change={() => (chosen.value = user)} />
              ))}
            </ul>
            {chosen.value && (
              <Change
                user={chosen.value}
                close={() => (chosen.value = null)}
                done={() => {
                  chosen.value = null;
                  reload();
                }}
              />
            )}
          </>
        )}
      </Paged>
    </>
  );
}

type Shown = Pick<Listed, 'displayName' | 'account' | 'role'> & Partial<Pick<Listed, 'disabled' | 'totp'>>;

function Row({ user, change }: { user: Shown; change?: () => void }) {
  const { displayName, account, role, disabled, totp } = user;
  return (
    <li class="card flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-3">
      <span class="grow font-semibold"><bdi>{displayName}</bdi></span>
      <Link class="link text-sm" href={`/operate/orders?q=${encodeURIComponent(account ?? displayName)}`}>
        <bdi>{account ?? displayName}</bdi>
      </Link>
      {disabled && <span class="chip text-warn">{ot('op.user.disabled')}</span>}
      {totp && <span class="chip text-soft">{ot('op.user.totp')}</span>}
      <span class="chip text-soft">{ot(`op.role.${role}`)}</span>
      {change && (
        <button class="btn min-h-9 px-3 py-1.5 text-sm" aria-label={ot('op.named', { name: ot('op.user.change'), text: displayName })} onClick={change}>
          {ot('op.user.change')}
        </button>
      )}
    </li>
  );
}

type Step = 'role' | 'disable' | 'enable' | 'end';

async function take(step: Step, userId: string, { role, note = '' }: Values): Promise<Failure | undefined> {
  switch (step) {
    case 'role':
      return (await request(SetUserRole, { input: { userId, role: role as Role } })).setUserRole?.userErrors[0];
    case 'disable':
      return (await request(DisableUser, { input: { userId, note } })).disableUser?.userErrors[0];
    case 'enable':
      return (await request(EnableUser, { input: { userId } })).enableUser?.userErrors[0];
    case 'end':
      return (await request(EndUserSessions, { input: { userId } })).endUserSessions?.userErrors[0];
  }
}

/** The changes of one user. Each signs the user out everywhere. */
function Change({ user, close, done }: { user: Listed; close: () => void; done: () => void }) {
  const own = user.id === currentUser.value?.id;
  const form = (step: Step, children?: preact.ComponentChildren) => (
    <Form label={ot(`op.user.${step}`)} send={(values) => take(step, user.id, values)} done={done}>
      {children}
    </Form>
  );
  return (
    <Dialog title={user.displayName} close={close}>
      <div class="grid gap-5">
        {own && <p class="note">{ot('op.user.own')}</p>}
        {!own &&
          form(
            'role',
            <Field label={ot('op.role')}>
              <Select name="role" value={user.role} choices={roles()} />
            </Field>,
          )}
        {form('end')}
        {!own && (user.disabled ? form('enable') : form('disable', <Note label={ot('op.reason')} required />))}
      </div>
    </Dialog>
  );
}
