/** The journeys of buyers against `demo`, all in one process. The others depend on the page alone: serve.test.ts has them. */
import { serverJourneys } from './journeys';
import { curtain } from './shop';
import { inTheDemo } from './venue';

serverJourneys(curtain(), inTheDemo());
