import { type Static, Type } from 'typebox'
import { defineKind, type KindObject } from '../kind.ts'
import { Text } from '../parts.ts'
import { OneOf } from '../words.ts'
import { KOLLECT_GROUP, KOLLECT_VERSION } from './names.ts'
import { Names, SecretRef } from './parts.ts'
import { SinkStatus, sinkColumns, sinkFields } from './sink-parts.ts'

const Spec = Type.Object(
  {
    type: OneOf(['nats', 'kafka'], { description: 'what takes the events' }),
    ...sinkFields,
    nats: Type.Optional(
      Type.Object(
        {
          url: Type.Optional(Text(2048, 'address such as nats://nats.example.com:4222; default: the endpoint')),
          subject: Text(253, 'subject, such as inventory.{cluster}.{namespace}.{name}; no wildcards'),
          stream: Type.Optional(Text(253, 'JetStream stream; default: kollect_events')),
          secretRef: Type.Optional(SecretRef('credentials; default: secretRef of the sink')),
        },
        { description: 'for type nats' },
      ),
    ),
    kafka: Type.Optional(
      Type.Object(
        {
          brokers: Type.Optional(Names('address', 'host:port of brokers that are asked first; at least one')),
          topic: Text(249, 'topic'),
          secretRef: Type.Optional(SecretRef('credentials; default: secretRef of the sink')),
        },
        { description: 'for type kafka' },
      ),
    ),
  },
  { description: 'where events go' },
)

/** A sink of events. */
export const kollectEventSink = defineKind({
  group: KOLLECT_GROUP,
  version: KOLLECT_VERSION,
  kind: 'KollectEventSink',
  plural: 'kollecteventsinks',
  singular: 'kollecteventsink',
  shortNames: ['kevt'],
  categories: [],
  description: 'A subject of NATS JetStream or a topic of Kafka.',
  columns: sinkColumns,
  spec: Spec,
  status: SinkStatus,
  example: {
    apiVersion: `${KOLLECT_GROUP}/${KOLLECT_VERSION}`,
    kind: 'KollectEventSink',
    metadata: { name: 'stream', namespace: 'team-a' },
    spec: {
      type: 'nats',
      endpoint: 'nats://nats.example.com:4222',
      nats: { subject: 'inventory.{cluster}.{namespace}.{name}' },
    },
  },
})

/** Which subject or topic events go to. */
export type KollectEventSinkSpec = Static<typeof Spec>
/** The object as the API keeps it. */
export type KollectEventSink = KindObject<KollectEventSinkSpec, Static<typeof SinkStatus>>
