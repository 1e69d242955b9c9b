import { Type } from 'typebox'

/** Parameters that many routes share. Lengths are bounded: what is longer names nothing. */
export const Name = (what: string) => Type.String({ minLength: 1, maxLength: 253, description: `name of the ${what}` })
export const Filter = (description: string) => Type.Optional(Type.String({ maxLength: 253, description }))

/** Of lists over the fleet. */
export const InSet = {
  set: Filter('only clusters in this set (ManagedClusterSet)'),
}

export const ClusterParams = Type.Object({ name: Name('cluster') })

export const maxPageSize = 1000
/** Paging by cursor: take `next` of one page as `cursor` of the following, with the same filters and order. */
export const PageQuery = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: maxPageSize, default: 100 })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 2048, description: '`next` of the page before' })),
  order: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')], { default: 'asc' })),
}
export const SortBy = <const K extends readonly [string, ...string[]]>(...keys: K) =>
  Type.Optional(Type.Enum(keys, { default: keys[0] }))
