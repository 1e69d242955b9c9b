import type { FastifyServerOptions } from 'fastify'

type Ajv = Parameters<NonNullable<NonNullable<FastifyServerOptions['ajv']>['onCreate']>>[0]
type Validate = ReturnType<Ajv['compile']>

const compiled = new WeakMap<object, Validate>()

/**
 * Schemas are compiled by the first request that needs them, and once for all servers of a process: to compile those of all routes
 * takes longer than all else of a start.
 */
export function compileWhenAsked(ajv: Ajv): void {
  const compile = ajv.compile.bind(ajv)
  const compileOnce = (schema: object): Validate => {
    const known = compiled.get(schema) ?? compile(schema)
    compiled.set(schema, known)
    return known
  }
  const late = (schema: object) => {
    const validate = (data: unknown, context?: Parameters<Validate>[1]) => {
      const known = compileOnce(schema)
      const isValid = known(data, context)
      validate.errors = known.errors
      return isValid
    }
    validate.errors = null as Validate['errors']
    // Its presence tells Fastify that this is a function of Ajv, which takes the context of the data.
    validate.schemaEnv = true
    return validate
  }
  ajv.compile = late as unknown as Ajv['compile'] // of its many signatures the one that Fastify calls
}
