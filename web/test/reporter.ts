/** Writes one line of JSON per test, for test/testrun; what tests print is left out. */
import { relative } from 'node:path';
import type { SerializedError } from 'vitest';
import type { Reporter, TestCase, TestModule } from 'vitest/node';

const ROOT = `${import.meta.dirname}/../..`;
const PREFIX = 'testrun ';

interface Line {
  file: string;
  name: string;
  state: string;
  at?: string;
  error?: string;
  took?: number;
}

const write = (line: Line): void => void process.stdout.write(`${PREFIX}${JSON.stringify(line)}\n`);

/** Where a test failed: the innermost line of its own file. */
function placeOf(errors: readonly { stacks?: { file: string; line: number }[] }[], file: string): string {
  const frames = errors.flatMap((error) => error.stacks ?? []);
  const frame = frames.find((one) => relative(ROOT, one.file) === file) ?? frames[0];
  return frame ? `${relative(ROOT, frame.file)}:${frame.line}` : '';
}

const textOf = (errors: readonly SerializedError[]): string => errors.map((error) => [error.stack || error.message, error['diff']].filter(Boolean).join('\n')).join('\n\n');

export default class implements Reporter {
  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result();
    const file = relative(ROOT, test.module.moduleId);
    write({ file, name: test.fullName, state, took: (test.diagnostic()?.duration ?? 0) / 1000, ...(state === 'failed' && { at: placeOf(errors as never, file), error: textOf(errors) }) });
  }

  /** A file that failed as a whole: it does not load, or a hook of it failed. */
  onTestModuleEnd(module: TestModule): void {
    const errors = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    const file = relative(ROOT, module.moduleId);
    if (errors.length) write({ file, name: '', state: 'failed', at: placeOf(errors as never, file), error: textOf(errors) });
  }

  onTestRunEnd(_: readonly TestModule[], unhandled: readonly SerializedError[]): void {
    if (unhandled.length) write({ file: 'web', name: '', state: 'failed', error: textOf(unhandled) });
  }
}
