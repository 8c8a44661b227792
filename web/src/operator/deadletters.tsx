/** Dead letters and unmatched payments, which wait for the decision of an operator. */
import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { useRefresh } from '../api/refresh';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Failure } from '@seckill/client/types';
import { DropLetter, HeldPayments, Letter as LetterDoc, LetterActs, Letters, ReplayLetter, ReplayLetters, ReturnHeld, SetAside, SettleHeld } from '../documents/letters';
import { count, money } from '../i18n/text';
import { FaultMessage, Loading, Stale, Title, DateTime } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { Form, Note } from './form';
import { Paged } from './paged';
import { ot, type OpKey } from './texts';

type Letter = NonNullable<ResultOf<typeof Letters>['letters']>['edges'][number]['node'];
type Held = NonNullable<ResultOf<typeof HeldPayments>['held']>['edges'][number]['node'];
type Decision = NonNullable<ResultOf<typeof LetterActs>['acts']>['edges'][number]['node'];

export function DeadLetters() {
  const { page, reload: recount } = useLoad('dead-letters', (signal) => request(SetAside, {}, signal));
  useRefresh(recount);
  const loads = useSignal(0);
  const reload = (): void => {
    loads.value++; // the lists load again as well
    void recount();
  };
  switch (page.value.state) {
    case 'loading':
    case 'missing':
      return <Loading />;
    case 'failed':
      return <FaultMessage fault={page.value.fault} again={reload} />;
    case 'ready': {
      const { letters, held, acts } = page.value.data;
      const all = letters?.totalCount ?? 0;
      return (
        <div class="grid grid-cols-1 gap-6">
          <div class="flex flex-wrap items-center justify-between gap-3">
            <Title>{ot('op.aside')}</Title>
            <button class="btn" onClick={reload}>
              {ot('op.refresh')}
            </button>
          </div>
          <Stale fault={page.value.fault} again={reload} />
          <Part name="op.letters" none="op.lettersNone" many={all}>
            {all > 1 && <ReplayAll many={all} reload={reload} />}
            <Paged key={loads.value} name="letters" live ask={async (after, signal) => (await request(Letters, { after }, signal)).letters}>
              {(nodes) => (
                <ul class="grid grid-cols-1 gap-2">
                  {nodes.map((letter) => (
                    <LetterRow key={letter.id} letter={letter} reload={reload} />
                  ))}
                </ul>
              )}
            </Paged>
          </Part>
          <Part name="op.held" none="op.heldNone" many={held?.totalCount ?? 0}>
            <Paged key={loads.value} name="held-payments" live ask={async (after, signal) => (await request(HeldPayments, { after }, signal)).held}>
              {(nodes) => (
                <ul class="grid grid-cols-1 gap-2">
                  {nodes.map((each) => (
                    <HeldRow key={each.id} held={each} reload={reload} />
                  ))}
                </ul>
              )}
            </Paged>
          </Part>
          {!!acts?.totalCount && <section class="card p-5">
            <h2 class="head mb-3">
              {ot('op.decided')} <span class="font-normal text-soft tabular-nums">{count(acts.totalCount)}</span>
            </h2>
            <Paged name={`letter-acts ${acts.totalCount}`} ask={async (after, signal) => (await request(LetterActs, { after }, signal)).acts}>
              {(nodes) => (
                <ul class="grid grid-cols-1 gap-2">
                  {nodes.map((past) => (
                    <DecisionRow key={past.letterId + past.kind} past={past} />
                  ))}
                </ul>
              )}
            </Paged>
          </section>}
        </div>
      );
    }
  }
}

/** A list with its heading and its length. */
function Part(props: { name: OpKey; none: OpKey; many: number; children: ComponentChildren }) {
  return (
    <section class="card p-5">
      <h2 class="head mb-3">
        {ot(props.name)} <span class="font-normal text-soft tabular-nums">{count(props.many)}</span>
      </h2>
      {props.many ? <div class="grid grid-cols-1 gap-2">{props.children}</div> : <p class="text-soft">{ot(props.none)}</p>}
    </section>
  );
}

/** An action that is confirmed with a reason. */
interface Confirmation {
  name: string;
  sure: string;
  send: (note: string) => Promise<Failure | undefined>;
  /** What is shown after success; op.saved without it. */
  result?: () => string;
}

/** The dialog that confirms an action. */
function ConfirmDialog({ ask, close, done }: { ask: Confirmation; close: () => void; done: () => void }) {
  return (
    <Dialog title={ask.name} close={close}>
      <Form
        label={ask.name}
        send={({ note = '' }) => ask.send(note)}
        done={() => {
          close();
          toast(ask.result?.() ?? ot('op.saved'));
          done();
        }}
      >
        <p>{ask.sure}</p>
        <Note label={ot('op.reason')} required />
      </Form>
    </Dialog>
  );
}

/** The button that puts all messages back into their streams. */
function ReplayAll({ many, reload }: { many: number; reload: () => void }) {
  const asking = useSignal(false);
  let result = '';
  const ask: Confirmation = {
    name: ot('op.replayAll'),
    sure: ot('op.sure.replayAll', { count: count(many) }),
    send: async (note) => {
      const { act } = await request(ReplayLetters, { input: { note } });
      if (act) result = ot('op.replayedAll', { replayed: count(act.replayed), refused: count(act.refused) });
      return act?.userErrors[0];
    },
    result: () => result,
  };
  return (
    <div>
      <button class="btn" onClick={() => (asking.value = true)}>
        {ask.name}
      </button>
      {asking.value && <ConfirmDialog ask={ask} close={() => (asking.value = false)} done={reload} />}
    </div>
  );
}

function LetterRow({ letter, reload }: { letter: Letter; reload: () => void }) {
  const asking = useSignal<Confirmation | null>(null);
  const looking = useSignal(false);
  const replay: Confirmation = {
    name: ot('op.replay'),
    sure: ot('op.sure.replay'),
    send: async (note) => (await request(ReplayLetter, { input: { letterId: letter.id, note } })).act?.userErrors[0],
  };
  const drop: Confirmation = {
    name: ot('op.drop'),
    sure: ot('op.sure.drop'),
    send: async (note) => (await request(DropLetter, { input: { letterId: letter.id, note } })).act?.userErrors[0],
  };
  return (
    <li class="note grid grid-cols-1 gap-2">
      <p class="font-medium break-words"><bdi>{letter.reason}</bdi></p>
      <p class="text-sm break-words text-soft">
        <DateTime at={letter.setAsideAt} /> · {letter.stream} · {ot('op.letterTries', { tries: count(letter.attempts), times: count(letter.deliveries) })}
        {letter.orderTask && ` · ${letter.orderTask.id}`}
      </p>
      <div class="flex flex-wrap gap-3">
        <button class="btn btn-main" onClick={() => (asking.value = replay)}>
          {ot('op.replay')}
        </button>
        <button class="btn" onClick={() => (asking.value = drop)}>
          {ot('op.drop')}
        </button>
        <button class="btn" onClick={() => (looking.value = true)}>
          {ot('op.inspect')}
        </button>
      </div>
      {asking.value && <ConfirmDialog ask={asking.value} close={() => (asking.value = null)} done={reload} />}
      {looking.value && (
        <Dialog title={ot('op.inspect')} close={() => (looking.value = false)}>
          <Fields id={letter.id} />
        </Dialog>
      )}
    </li>
  );
}

/** The fields of a message. */
function Fields({ id }: { id: string }) {
  const { page, reload } = useLoad(`letter ${id}`, async (signal) => (await request(LetterDoc, { id }, signal)).deadLetter);
  switch (page.value.state) {
    case 'loading':
      return <Loading />;
    case 'missing':
      return <p>{ot('op.none')}</p>;
    case 'failed':
      return <FaultMessage fault={page.value.fault} again={reload} />;
    case 'ready':
      return (
        <dl class="grid max-h-96 gap-3 overflow-y-auto text-sm" tabIndex={0}>
          {page.value.data.fields.map(({ name, value }) => (
            <div key={name}>
              <dt class="text-soft">{name}</dt>
              <dd class="font-mono break-all">{value}</dd>
            </div>
          ))}
        </dl>
      );
  }
}

function HeldRow({ held, reload }: { held: Held; reload: () => void }) {
  const asking = useSignal<Confirmation | null>(null);
  const amount = money(held.amount);
  const input = (note: string) => ({ input: { heldPaymentId: held.id, note } });
  const back: Confirmation = {
    name: ot('op.sendBack', { amount }),
    sure: ot('op.sure.sendBack', { amount }),
    send: async (note) => (await request(ReturnHeld, input(note))).act?.userErrors[0],
  };
  const settle: Confirmation = {
    name: ot('op.heldSettle'),
    sure: ot('op.sure.heldSettle', { amount }),
    send: async (note) => (await request(SettleHeld, input(note))).act?.userErrors[0],
  };
  return (
    <li class="note grid grid-cols-1 gap-2">
      <p class="flex flex-wrap justify-between gap-2">
        <strong class="tabular-nums">{money(held.amount)}</strong>
        {held.order && (
          <Link class="link tabular-nums" href={`/orders/${held.order.id}`}>
            {held.order.number}
          </Link>
        )}
      </p>
      <p class="text-sm break-words text-soft">
        <DateTime at={held.at} /> · {held.provider} · {held.transaction} · <bdi>{held.reason}</bdi>
      </p>
      <p class="flex flex-wrap gap-2">
        {/* Only its provider can return money without a known payment. */}
        {(held.order ? [back, settle] : [settle]).map((ask) => (
          <button key={ask.name} class="btn" onClick={() => (asking.value = ask)}>
            {ask.name}
          </button>
        ))}
      </p>
      {asking.value && <ConfirmDialog ask={asking.value} close={() => (asking.value = null)} done={reload} />}
    </li>
  );
}

function DecisionRow({ past }: { past: Decision }) {
  return (
    <li class="border-t border-line pt-2 first:border-0 first:pt-0">
      <p class="font-medium break-words">
        {ot(`op.did.${past.kind}`)}: <bdi>{past.reason}</bdi>
      </p>
      <p class="text-sm text-soft">
        <DateTime at={past.at} /> · <bdi>{past.actor?.displayName ?? ot('op.byCommand')}</bdi> · <bdi>{past.note}</bdi>
      </p>
    </li>
  );
}
