import { Type } from 'typebox'
import { StatusConditions } from './conditions.ts'

/** A text, with what it says. */
export const Text = (maxLength: number, description: string) => Type.String({ maxLength, description })
/** A text that is not empty. */
export const Word = (maxLength: number, description: string) => Type.String({ minLength: 1, maxLength, description })
export const Moment = (description: string) => Type.String({ format: 'date-time', description })
/** Base64 of bytes. */
export const Bytes = (description: string) => Type.String({ format: 'byte', description })
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
