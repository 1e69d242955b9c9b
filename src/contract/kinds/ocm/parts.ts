import { Type } from 'typebox'
import { StatusConditions } from '../conditions.ts'

/** A text, with what it says. */
export const Text = (maxLength: number, description: string) => Type.String({ maxLength, description })
/** A text that is not empty. */
export const Word = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
export const Moment = (description: string) => Type.String({ format: 'date-time', description })
/** Base64 of bytes. */
export const Bytes = (description: string) => Type.String({ format: 'byte', description })
/** An amount with a unit prefix, as a number or a text. */
export const Quantities = (description: string) =>
  Type.Record(Type.String(), Type.Union([Type.Integer(), Type.String()]), { description })
export const Conditions = Type.Optional(StatusConditions)

const LABEL = '[a-z0-9]([-a-z0-9]*[a-z0-9])?'
/** A namespace, or nothing. */
export const NamespaceName = (description: string) => Type.String({ maxLength: 63, pattern: `^${LABEL}$`, description })
/** A name as most objects have. */
export const ObjectName = (description: string) =>
  Type.String({ minLength: 1, maxLength: 253, pattern: `^${LABEL}(\\.${LABEL})*$`, description })

/** A list whose items are told apart by these fields. */
export const keyedBy = (...keys: readonly string[]) => ({
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': [...keys],
})

/** Labels that must be there; metav1.LabelSelector. */
export const LabelSelector = (description: string) =>
  Type.Object(
    {
      matchLabels: Type.Optional(
        Type.Record(Type.String(), Type.String(), { description: 'labels that must have exactly these values' }),
      ),
      matchExpressions: Type.Optional(
        Type.Array(
          Type.Object({
            key: Text(317, 'name of the label'),
            operator: Text(64, 'In, NotIn, Exists or DoesNotExist'),
            values: Type.Optional(Type.Array(Text(63, 'value'), { description: 'for In and NotIn' })),
          }),
          { description: 'further demands; all must be met' },
        ),
      ),
    },
    { description },
  )

/** Where pods of an agent may run. */
export const NodePlacement = Type.Object(
  {
    nodeSelector: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'labels the nodes must have' }),
    ),
    tolerations: Type.Optional(
      Type.Array(
        Type.Object({
          key: Type.Optional(Text(317, 'key of the taint; empty: of every one')),
          operator: Type.Optional(Text(64, 'Exists or Equal')),
          value: Type.Optional(Text(1024, 'value of the taint')),
          effect: Type.Optional(Text(64, 'effect of the taint; empty: every one')),
          tolerationSeconds: Type.Optional(
            Type.Integer({ format: 'int64', description: 'how long a NoExecute taint is borne; absent: for ever' }),
          ),
        }),
        { description: 'taints the pods bear' },
      ),
    ),
  },
  { description: 'which nodes the pods of the agent run on' },
)
