/** Tests of buyers against `demo`, in one process. The other tests of journeys.ts depend on the page only and run in serve.test.ts. */
import { serverJourneys } from './journeys';
import { browserFixture } from './shop';
import { demoEnvironment } from './environment';

serverJourneys(browserFixture(), demoEnvironment());
