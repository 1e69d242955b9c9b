import type { Ingester } from '../ingester.ts'

/** What streams need of the ingester. */
export type StreamIngester = Pick<Ingester, 'accept' | 'lost' | 'agent' | 'received' | 'heardTo' | 'knows'>
