/** Webhooks, for administrators: the endpoints, their secrets, and the log of what was delivered. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import type { ResultOf, VariablesOf } from '@seckill/client/operation';
import { CreateEndpoint, DeleteEndpoint, Deliveries as DeliveriesDoc, EndpointParts, Endpoints, ReplayDelivery, ReplayEvents, RotateSecret, SendTest, UpdateEndpoint } from '../documents/webhooks';
import { bounded } from '../forms/bounded';
import { now } from '../api/clock';
import { count } from '../i18n/text';
import { DateTime, NotFound, Stale, Title, Unready } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { instant, localInput } from './acts';
import { Field, Form } from './form';
import { Paged } from './paged';
import { useQuery } from './search';
import { Checkbox, checked, ConfirmDialog, Secret, SmallButton } from './secret';
import { ot } from './texts';
import { Select } from '../ui/select';
import { When } from './when';

type Endpoint = ResultOf<typeof EndpointParts>;
type Delivery = NonNullable<ResultOf<typeof DeliveriesDoc>['webhookDeliveries']>['edges'][number]['node'];

const EVENTS = [
  'ORDER_PLACED',
  'ORDER_PAID',
  'ORDER_EXPIRED',
  'ORDER_CANCELLED',
  'ORDER_REFUNDED',
  'ORDER_RECIPIENT_CHANGED',
  'ORDER_FULFILMENT_CHANGED',
  'SALE_STATE_CHANGED',
  'STOCK_LOW',
  'PAYMENT_UNMATCHED',
] as const satisfies readonly Endpoint['events'][number][];
const STATES = ['PENDING', 'DELIVERED', 'GIVEN_UP'] as const satisfies readonly Delivery['state'][];

const loadEndpoints = async (signal: AbortSignal) => (await request(Endpoints, {}, signal)).webhookEndpoints;

/** The page of all endpoints. */
export function Webhooks() {
  const { page, reload } = useLoad('webhooks', loadEndpoints);
  useRefresh(reload);
  const editing = useSignal<Endpoint | 'new' | null>(null);
  const rotating = useSignal<Endpoint | null>(null);
  const deleting = useSignal<Endpoint | null>(null);
  const secret = useSignal('');
  const close = (): void => void (editing.value = rotating.value = deleting.value = null);
  const done = (): void => {
    close();
    if (!secret.peek()) toast(ot('op.saved'));
    void reload();
  };
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<NotFound />} />;
  return (
    <div class="grid grid-cols-1 gap-4">
      <div class="flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.hooks')}</Title>
        <button class="btn btn-main" onClick={() => (editing.value = 'new')}>
          {ot('op.hooks.new')}
        </button>
      </div>
      <Stale fault={page.value.fault} again={reload} />
      {!page.value.data.length && <p class="note">{ot('op.hooks.none')}</p>}
      <ul class="grid grid-cols-1 gap-3">
        {page.value.data.map((endpoint) => (
          <Row
            key={endpoint.id}
            endpoint={endpoint}
            edit={() => (editing.value = endpoint)}
            rotate={() => (rotating.value = endpoint)}
            remove={() => (deleting.value = endpoint)}
          />
        ))}
      </ul>
      {editing.value && <Edit endpoint={editing.value === 'new' ? null : editing.value} close={close} done={done} secret={secret} />}
      {rotating.value && (
        <ConfirmDialog
          name={ot('op.hooks.rotate')}
          words={ot('op.hooks.sureRotate')}
          close={close}
          done={done}
          send={async (endpointId) => {
            const { act } = await request(RotateSecret, { input: { endpointId } });
            secret.value = act?.secret ?? '';
            return act?.userErrors;
          }}
          id={rotating.value.id}
        />
      )}
      {deleting.value && (
        <ConfirmDialog
          name={ot('op.hooks.delete')}
          words={ot('op.hooks.sureDelete', { url: deleting.value.url })}
          close={close}
          done={done}
          send={async (endpointId) => (await request(DeleteEndpoint, { input: { endpointId } })).act?.userErrors}
          id={deleting.value.id}
        />
      )}
      {secret.value && <Secret title={ot('op.hooks.secret')} hint={ot('op.hooks.secretHint')} text={secret.value} close={() => (secret.value = '')} />}
    </div>
  );
}

/** The words for the events of an endpoint. */
const eventsOf = (events: Endpoint['events']): string =>
  events.length === EVENTS.length ? ot('op.hooks.all') : events.map((event) => ot(`op.hooks.event.${event}`)).join(' · ');

function Row({ endpoint, edit, rotate, remove }: { endpoint: Endpoint; edit: () => void; rotate: () => void; remove: () => void }) {
  const { id, url, description, events, state, disabledReason, failingSince, formerSecretUntil } = endpoint;
  const button = (name: string, act: () => void) => <SmallButton name={name} about={url} act={act} />;
  return (
    <li class="card grid grid-cols-1 gap-2 p-4">
      <p class="flex flex-wrap items-center gap-2">
        <strong class="break-all">{url}</strong>
        <span class={`chip ${state === 'ENABLED' ? 'text-soft' : 'text-warn'}`}>{ot(`op.hooks.state.${state}`)}</span>
      </p>
      {description && <p class="wrap-anywhere"><bdi>{description}</bdi></p>}
      <p class="text-sm text-soft">{eventsOf(events)}</p>
      {disabledReason && <p class="text-sm font-medium text-warn">{disabledReason}</p>}
      {failingSince && (
        <p class="text-sm font-medium text-warn">
          {ot('op.hooks.failing')} <DateTime at={failingSince} />
        </p>
      )}
      {formerSecretUntil && (
        <p class="text-sm text-soft">
          {ot('op.hooks.former')} <DateTime at={formerSecretUntil} />
        </p>
      )}
      <div class="flex flex-wrap items-center gap-2">
        <Link class="btn btn-main min-h-9 px-3 py-1.5 text-sm" href={`/operate/webhooks/${id}`} aria-label={ot('op.named', { name: ot('op.hooks.log'), text: url })}>
          {ot('op.hooks.log')}
        </Link>
        {button(ot('op.hooks.edit'), edit)}
        {button(ot('op.hooks.rotate'), rotate)}
        {button(ot('op.hooks.delete'), remove)}
      </div>
    </li>
  );
}

interface DialogProps {
  close: () => void;
  done: () => void;
}

/** Creates an endpoint, or changes one. */
function Edit({ endpoint, close, done, secret }: DialogProps & { endpoint: Endpoint | null; secret: { value: string } }) {
  const title = ot(endpoint ? 'op.hooks.edit' : 'op.hooks.new');
  return (
    <Dialog title={title} close={close}>
      <Form
        label={ot('op.hooks.save')}
        done={done}
        send={async ({ url = '', description = '', enabled }, form) => {
          const events = checked(form, EVENTS);
          if (endpoint) {
            const input = { endpointId: endpoint.id, url, description, events, enabled: enabled === 'on' };
            return (await request(UpdateEndpoint, { input })).act?.userErrors;
          }
          const { act } = await request(CreateEndpoint, { input: { url, description, events } });
          secret.value = act?.secret ?? '';
          return act?.userErrors;
        }}
      >
        <Field label={ot('op.hooks.url')}>
          <input name="url" class="field font-normal" type="url" required ref={bounded({ most: 1024 })} defaultValue={endpoint?.url ?? ''} />
        </Field>
        <Field label={ot('op.hooks.description')}>
          <input name="description" class="field font-normal" ref={bounded({ most: 200 })} defaultValue={endpoint?.description ?? ''} />
        </Field>
        <fieldset class="grid gap-2">
          <legend class="mb-2 font-medium">{ot('op.hooks.events')}</legend>
          {EVENTS.map((event) => (
            <Checkbox key={event} name={event} words={ot(`op.hooks.event.${event}`)} on={endpoint?.events.includes(event) ?? true} />
          ))}
        </fieldset>
        {endpoint && <Checkbox name="enabled" words={ot('op.hooks.state.ENABLED')} on={endpoint.state === 'ENABLED'} />}
      </Form>
    </Dialog>
  );
}

/** The log of one endpoint. */
export function Deliveries({ id }: { id: string }) {
  const { page } = useLoad('webhooks', loadEndpoints);
  const [state, setState] = useQuery('state');
  const chosen = STATES.find((each) => each === state) ?? null;
  const endpoint = page.value.state === 'ready' ? page.value.data.find((each) => each.id === id) : undefined;
  const replaying = useSignal(false);
  const loads = useSignal(0);
  return (
    <>
      <Link class="link" href="/operate/webhooks">
        {ot('op.hooks')}
      </Link>
      <div class="my-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.hooks.log')}</Title>
        <Select
          class="w-auto"
          label={ot('op.hooks.outcome')}
          value={chosen ?? ''}
          none={ot('op.all')}
          change={setState}
          choices={STATES.map((each) => ({ value: each, label: ot(`op.hooks.delivery.${each}`) }))}
        />
      </div>
      {endpoint && <p class="mb-4 break-all text-soft">{endpoint.url}</p>}
      <div class="mb-4 flex flex-wrap items-start gap-3">
        <Form
          label={ot('op.hooks.test')}
          send={async () => (await request(SendTest, { input: { endpointId: id } })).act?.userErrors}
          done={() => {
            toast(ot('op.hooks.tested'));
            loads.value++;
          }}
        />
        <button class="btn" onClick={() => (replaying.value = true)}>
          {ot('op.hooks.replay')}
        </button>
      </div>
      {replaying.value && (
        <Replay
          id={id}
          close={() => (replaying.value = false)}
          done={() => {
            replaying.value = false;
            loads.value++;
          }}
        />
      )}
      <Paged
        name={`deliveries ${id} ${state} ${loads.value}`}
        live
        ask={async (after, signal) => (await request(DeliveriesDoc, { endpointId: id, after, state: chosen }, signal)).webhookDeliveries}
      >
        {(deliveries, reload) => (
          <ul class="grid grid-cols-1 gap-2">
            {deliveries.map((delivery) => (
              <DeliveryRow key={delivery.id} delivery={delivery} reload={reload} />
            ))}
          </ul>
        )}
      </Paged>
    </>
  );
}

const DAY_MS = 86_400_000;

/** Sends the events of a period again. */
function Replay({ id, close, done }: DialogProps & { id: string }) {
  const sent = useSignal(0);
  const at = now();
  return (
    <Dialog title={ot('op.hooks.replay')} close={close}>
      <Form
        label={ot('op.hooks.replay')}
        done={() => {
          toast(ot('op.hooks.replayed', { count: count(sent.value) }));
          done();
        }}
        send={async ({ since, until, all }) => {
          sent.value = 0;
          for (let from: string | null = instant(since); from; ) {
            const input: VariablesOf<typeof ReplayEvents>['input'] = { endpointId: id, since: from, until: instant(until), all: all === 'on' };
            const { act } = await request(ReplayEvents, { input });
            if (act?.userErrors.length) return act.userErrors;
            sent.value += act?.replayed ?? 0;
            from = act?.continueSince ?? null;
          }
          return null;
        }}
      >
        <p>{ot('op.hooks.replayHint')}</p>
        <When kind="time" label={ot('op.hooks.since')} name="since" required value={localInput(at - DAY_MS)} />
        <When kind="time" label={ot('op.hooks.until')} name="until" required value={localInput(at)} />
        <Checkbox name="all" words={ot('op.hooks.replayAll')} on={false} />
      </Form>
    </Dialog>
  );
}

function DeliveryRow({ delivery, reload }: { delivery: Delivery; reload: () => void }) {
  const { id, event, subject, payload, state, attempts, statusCode, error, durationMs, nextAttemptAt, createdAt } = delivery;
  return (
    <li class="card grid grid-cols-1 gap-2 p-4">
      <p class="flex flex-wrap items-center gap-2">
        <strong>{ot(`op.hooks.event.${event}`)}</strong>
        <span class={`chip ${state === 'GIVEN_UP' ? 'text-warn' : 'text-soft'}`}>{ot(`op.hooks.delivery.${state}`)}</span>
      </p>
      <p class="text-sm break-words text-soft">
        <DateTime at={createdAt} /> · <span class="break-all">{subject}</span> · {ot('op.hooks.tries', { count: count(attempts) })}
        {statusCode !== null && ` · HTTP ${statusCode} · ${count(durationMs)} ms`}
      </p>
      {error && <p class="text-sm wrap-anywhere text-warn">{error}</p>}
      {nextAttemptAt && (
        <p class="text-sm text-soft">
          {ot('op.hooks.next')} <DateTime at={nextAttemptAt} />
        </p>
      )}
      <details>
        <summary class="link">{ot('op.hooks.content')}</summary>
        <pre class="note mt-2 font-mono text-xs break-all whitespace-pre-wrap">{payload}</pre>
      </details>
      <Form
        label={ot('op.hooks.again')}
        send={async () => (await request(ReplayDelivery, { input: { deliveryId: id } })).act?.userErrors}
        done={() => {
          toast(ot('op.hooks.sentAgain'));
          reload();
        }}
      />
    </li>
  );
}
