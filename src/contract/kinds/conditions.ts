import { type Static, Type } from 'typebox'

/** One dated statement in a status, as Kubernetes defines it (metav1.Condition). */
export const StatusCondition = Type.Object({
  type: Type.String({
    maxLength: 316,
    pattern:
      '^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$',
    description: 'what it is about, in CamelCase',
  }),
  status: Type.Union([Type.Literal('True'), Type.Literal('False'), Type.Literal('Unknown')], {
    description: 'whether it is so',
  }),
  observedGeneration: Type.Optional(
    Type.Integer({ minimum: 0, description: 'generation of the object that this was said of' }),
  ),
  lastTransitionTime: Type.String({ format: 'date-time', description: 'when the status last changed' }),
  reason: Type.String({
    minLength: 1,
    maxLength: 1024,
    pattern: '^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$',
    description: 'for programs, in CamelCase',
  }),
  message: Type.String({ maxLength: 32768, description: 'for people' }),
})
export type StatusCondition = Static<typeof StatusCondition>

/** The conditions of a status: one per type. */
export const StatusConditions = Type.Array(StatusCondition, {
  maxItems: 32,
  description: 'what is so now and since when, one of each type',
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': ['type'],
})
