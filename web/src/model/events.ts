import { causeIn, type EventView, eventWords } from '../contract.ts'
import type { Need } from './cluster.ts'
import { formatSpan, formatStretch } from './format.ts'

export interface EventLine {
  readonly key: string
  readonly cluster: string
  /** of the event, as the hub names it */
  readonly type: string
  readonly at: number
  readonly need: Need
  /** continues a sentence that begins with the cluster's name */
  readonly text: string
  /** why, with the request that was tried; '' where that says no more than the text */
  readonly detail: string
}

/** One event in words, with times as this page writes them. */
export function eventLine(event: EventView): EventLine {
  const { type, cluster, at, data } = event
  const words = eventWords(event, { stretch: formatStretch, span: formatSpan })
  const message = typeof data?.message === 'string' ? data.message : ''
  const detail = causeIn(message) === message ? '' : message
  return { key: `${cluster} ${at} ${type} ${JSON.stringify(data)}`, cluster, type, at, detail, ...words }
}
