import type { ApiObject } from '#apiserver'
import type { EventFacts } from '../facts.ts'
import { hash } from '../random.ts'
import { timestamp } from './meta.ts'

/** An event is called after its object, with a number behind it; one of a thing without a namespace is kept in `default`. */
export const eventName = ({ about, reason, message }: Pick<EventFacts, 'about' | 'reason' | 'message'>): string =>
  `${about.name}.${(hash(`${about.uid}/${reason}/${message}`) >>> 0).toString(16).padStart(8, '0')}`

export const eventNamespace = ({ about }: Pick<EventFacts, 'about'>): string => about.namespace || 'default'

export function eventObject(event: EventFacts): ApiObject {
  const { about, isWarning, reason, message, component, host, count, firstAt, lastAt } = event
  const { apiVersion, kind, namespace, name, uid } = about
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(event), namespace: eventNamespace(event), creationTimestamp: timestamp(firstAt) },
    involvedObject: { apiVersion, kind, name, uid, ...(namespace !== '' && { namespace }) },
    type: isWarning ? 'Warning' : 'Normal',
    ...{ reason, message, count },
    source: { component, ...(host !== undefined && { host }) },
    firstTimestamp: timestamp(firstAt),
    lastTimestamp: timestamp(lastAt),
    reportingComponent: component,
    reportingInstance: host ?? '',
  }
}
