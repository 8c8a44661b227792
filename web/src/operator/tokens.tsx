/** Service tokens, for administrators: with what other systems use the API. */
import { useSignal } from '@preact/signals';
import type { ResultOf } from '@seckill/client/operation';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import { CreateToken, RevokeToken, ServiceTokens } from '../documents/tokens';
import { bounded } from '../forms/bounded';
import { DateTime, NotFound, Stale, Title, Unready } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Field, Form } from './form';
import { Checkbox, checked, ConfirmDialog, Secret, SmallButton } from './secret';
import { ot } from './texts';

type Token = NonNullable<ResultOf<typeof ServiceTokens>['serviceTokens']>[number];

const SCOPES = [
  'CATALOGUE_READ',
  'CATALOGUE_WRITE',
  'SALES_READ',
  'SALES_WRITE',
  'ORDERS_READ',
  'ORDERS_WRITE',
  'EXPORTS',
  'EVENTS_READ',
  'USERS_READ',
  'USERS_WRITE',
] as const satisfies readonly Token['scopes'][number][];
const DAYS = 90;
const MOST_DAYS = 366;

/** The page of all service tokens. */
export function Tokens() {
  const { page, reload } = useLoad('tokens', async (signal) => (await request(ServiceTokens, {}, signal)).serviceTokens);
  useRefresh(reload);
  const making = useSignal(false);
  const revoking = useSignal<Token | null>(null);
  const secret = useSignal('');
  const done = (): void => {
    making.value = false;
    revoking.value = null;
    if (!secret.peek()) toast(ot('op.saved'));
    void reload();
  };
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<NotFound />} />;
  return (
    <div class="grid grid-cols-1 gap-4">
      <div class="flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.tokens')}</Title>
        <button class="btn btn-main" onClick={() => (making.value = true)}>
          {ot('op.tokens.new')}
        </button>
      </div>
      <Stale fault={page.value.fault} again={reload} />
      {!page.value.data.length && <p class="note">{ot('op.tokens.none')}</p>}
      <ul class="grid grid-cols-1 gap-3">
        {page.value.data.map((token) => (
          <Row key={token.id} token={token} revoke={() => (revoking.value = token)} />
        ))}
      </ul>
      {making.value && <Make close={() => (making.value = false)} done={done} secret={secret} />}
      {revoking.value && (
        <ConfirmDialog
          name={ot('op.tokens.revoke')}
          words={ot('op.tokens.sureRevoke', { name: revoking.value.name })}
          close={() => (revoking.value = null)}
          done={done}
          send={async (serviceTokenId) => (await request(RevokeToken, { input: { serviceTokenId } })).act?.userErrors}
          id={revoking.value.id}
        />
      )}
      {secret.value && <Secret title={ot('op.tokens.secret')} hint={ot('op.tokens.secretHint')} text={secret.value} close={() => (secret.value = '')} />}
    </div>
  );
}

function Row({ token: { name, scopes, createdBy, expiresAt, lastUsedAt }, revoke }: { token: Token; revoke: () => void }) {
  return (
    <li class="card grid grid-cols-1 gap-2 p-4">
      <p class="flex flex-wrap items-center justify-between gap-2">
        <strong class="wrap-anywhere">
          <bdi>{name}</bdi>
        </strong>
        <SmallButton name={ot('op.tokens.revoke')} about={name} act={revoke} />
      </p>
      <p class="text-sm text-soft">{scopes.map((scope) => ot(`op.tokens.scope.${scope}`)).join(' · ')}</p>
      <p class="text-sm text-soft">
        {ot('op.tokens.ends')} <DateTime at={expiresAt} />
        {' · '}
        {ot('op.tokens.used')} {lastUsedAt ? <DateTime at={lastUsedAt} /> : ot('op.tokens.never')}
        {createdBy && (
          <>
            {' · '}
            {ot('op.tokens.by')} <bdi>{createdBy.displayName}</bdi>
          </>
        )}
      </p>
    </li>
  );
}

/** Makes a token. */
function Make({ close, done, secret }: { close: () => void; done: () => void; secret: { value: string } }) {
  return (
    <Dialog title={ot('op.tokens.new')} close={close}>
      <Form
        label={ot('op.tokens.make')}
        done={done}
        send={async ({ name = '', expiresInDays }, form) => {
          const { act } = await request(CreateToken, { input: { name, scopes: checked(form, SCOPES), expiresInDays: Number(expiresInDays) } });
          secret.value = act?.secret ?? '';
          return act?.userErrors;
        }}
      >
        <Field label={ot('op.tokens.name')}>
          <input name="name" class="field font-normal" required ref={bounded({ most: 80 })} />
        </Field>
        <Field label={ot('op.tokens.days')}>
          <input name="expiresInDays" class="field font-normal" type="number" required min={1} max={MOST_DAYS} defaultValue={DAYS} />
        </Field>
        <fieldset class="grid gap-2">
          <legend class="mb-2 font-medium">{ot('op.tokens.scopes')}</legend>
          {SCOPES.map((scope) => (
            <Checkbox key={scope} name={scope} words={ot(`op.tokens.scope.${scope}`)} on={false} />
          ))}
        </fieldset>
      </Form>
    </Dialog>
  );
}
