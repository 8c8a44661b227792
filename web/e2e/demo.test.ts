/** The journeys against `demo`, all in one process. */
import { journeys } from './journeys';
import { curtain } from './shop';
import { inTheDemo } from './venue';

journeys(curtain(), inTheDemo());
