import { nearest } from '#model'
import type { StructuralSchema } from '../../crd-schema.ts'
import type { Fault } from '../../kind.ts'
import { isRecord } from './json.ts'

/** Fields that the schema does not have: an API server leaves them out, which is hardly what was meant. */
export function unknownFields(schema: StructuralSchema, value: unknown, path: string): Fault[] {
  if (Array.isArray(value)) {
    const { items } = schema
    return items ? value.flatMap((item, at) => unknownFields(items, item, `${path}[${at}]`)) : []
  }
  const { properties } = schema
  if (!isRecord(value) || !properties) return []
  return Object.entries(value).flatMap(([name, field]) => {
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known) return unknownFields(known, field, `${path}.${name}`)
    if (schema['x-kubernetes-preserve-unknown-fields']) return []
    const meant = nearest(name, Object.keys(properties))
    return [
      {
        path: `${path}.${name}`,
        message:
          meant === undefined
            ? 'is no field of this kind: leave it out'
            : `is no field of this kind: ${meant} is meant, perhaps`,
      },
    ]
  })
}
