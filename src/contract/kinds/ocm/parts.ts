import { Type } from 'typebox'
import { Text } from '../parts.ts'

/** An amount with a unit prefix, as a number or a text. */
export const Quantities = (description: string) =>
  Type.Record(Type.String(), Type.Union([Type.Integer(), Type.String()]), { description })

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
