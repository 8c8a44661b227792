/** Dead letters and unmatched payments, which wait for the decision of an operator. */
import { useSignal } from '@preact/signals';
import { Link } from 'wouter-preact';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import type { Failure } from '@seckill/client/types';
import { DropLetter, HeldPayments, Letter as LetterDoc, LetterActs, Letters, ReplayLetter, ReplayLetters, ReturnHeld, SetAside, SettleHeld } from '../documents/letters';
import { count, money } from '../i18n/text';
import { DateTime, Unready } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { toast } from '../ui/toast';
import { acted, type Asked } from './asked';
import { Form, Note } from './form';
import { Awaiting, useAwaiting } from './interventions';
import { Rows } from './paged';
import { Part, Shell, useCounts } from './shell';
import { ot } from './texts';

type Letter = NonNullable<ResultOf<typeof Letters>['letters']>['edges'][number]['node'];
type Held = NonNullable<ResultOf<typeof HeldPayments>['held']>['edges'][number]['node'];
type Decision = NonNullable<ResultOf<typeof LetterActs>['acts']>['edges'][number]['node'];

export function DeadLetters() {
  const { of, loads } = useCounts('dead-letters', (signal) => request(SetAside, {}, signal));
  const awaiting = useAwaiting('RETURN_PAYMENT', 'SETTLE_PAYMENT');
  const reload = (): void => void Promise.all([awaiting.reload(), of.reload()]);
  return (
    <Shell of={of} title={() => ot('op.aside')}>
      {({ letters, held, acts }) => (
        <>
          <Awaiting acts={awaiting.acts} decided={reload} />
          <Part name="op.letters" none="op.lettersNone" many={letters?.totalCount ?? 0}>
            {(letters?.totalCount ?? 0) > 1 && <ReplayAll many={letters!.totalCount!} reload={reload} />}
            <Rows
              key={loads}
              name="letters"
              live
              ask={async (after, signal) => (await request(Letters, { after }, signal)).letters}
              row={(letter) => <LetterRow key={letter.id} letter={letter} reload={reload} />}
            />
          </Part>
          <Part name="op.held" none="op.heldNone" many={held?.totalCount ?? 0}>
            <Rows
              key={loads}
              name="held-payments"
              live
              ask={async (after, signal) => (await request(HeldPayments, { after }, signal)).held}
              row={(each) => <HeldRow key={each.id} held={each} reload={reload} />}
            />
          </Part>
          {!!acts?.totalCount && (
            <Part name="op.decided" none="op.none" many={acts.totalCount}>
              <Rows
                name={`letter-acts ${acts.totalCount}`}
                ask={async (after, signal) => (await request(LetterActs, { after }, signal)).acts}
                row={(past) => <DecisionRow key={past.letterId + past.kind} past={past} />}
              />
            </Part>
          )}
        </>
      )}
    </Shell>
  );
}

/** An action that is confirmed with a reason. */
interface Confirmation {
  name: string;
  sure: string;
  send: (note: string) => Promise<Failure | undefined>;
  /** Says what it came to. */
  say: () => void;
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
          ask.say();
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
    say: () => toast(result),
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
    say: () => acted(),
  };
  const drop: Confirmation = {
    name: ot('op.drop'),
    sure: ot('op.sure.drop'),
    send: async (note) => (await request(DropLetter, { input: { letterId: letter.id, note } })).act?.userErrors[0],
    say: () => acted(),
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
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} missing={<p>{ot('op.none')}</p>} />;
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

function HeldRow({ held, reload }: { held: Held; reload: () => void }) {
  const asking = useSignal<Confirmation | null>(null);
  const amount = money(held.amount);
  const input = (note: string) => ({ input: { heldPaymentId: held.id, note } });
  let asked: Asked | null | undefined;
  const outcome = (act: { intervention: Asked | null; userErrors: Failure[] } | null): Failure | undefined => {
    asked = act?.intervention;
    return act?.userErrors[0];
  };
  const back: Confirmation = {
    name: ot('op.sendBack', { amount }),
    sure: ot('op.sure.sendBack', { amount }),
    send: async (note) => outcome((await request(ReturnHeld, input(note))).act),
    say: () => acted(asked),
  };
  const settle: Confirmation = {
    name: ot('op.heldSettle'),
    sure: ot('op.sure.heldSettle', { amount }),
    send: async (note) => outcome((await request(SettleHeld, input(note))).act),
    say: () => acted(asked),
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
        {ot('op.named', { name: ot(`op.did.${past.kind}`), text: past.reason ?? '' })}
      </p>
      <p class="text-sm text-soft">
        <DateTime at={past.at} /> · <bdi>{past.actor?.displayName ?? ot('op.byCommand')}</bdi> · <bdi>{past.note}</bdi>
      </p>
    </li>
  );
}
