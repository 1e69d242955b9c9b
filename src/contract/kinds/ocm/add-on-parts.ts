import { Type } from 'typebox'
import { Text, Word } from '../parts.ts'

/** Which sort of object configures an add-on. */
export const ConfigResource = {
  group: Type.Optional(
    Type.String({ maxLength: 253, default: '', description: 'group of the object that configures it' }),
  ),
  resource: Word(253, 'its resource, such as addondeploymentconfigs'),
}

/** Which object configures an add-on. */
export const ConfigReferent = {
  namespace: Type.Optional(Text(63, 'its namespace; absent: it is one of the whole cluster')),
  name: Word(253, 'its name'),
}

export const AddOnConfig = Type.Object({ ...ConfigResource, ...ConfigReferent })

/** An object that configures an add-on, with the hash of its spec. */
export const HashedConfig = (description: string) =>
  Type.Optional(
    Type.Object({ ...ConfigReferent, specHash: Type.Optional(Text(256, 'hash of its spec')) }, { description }),
  )

export const AddOnMeta = Type.Optional(
  Type.Object(
    {
      displayName: Type.Optional(Text(1024, 'shown name')),
      description: Type.Optional(Text(32768, 'what it does')),
    },
    { description: 'what people are told of it' },
  ),
)

export const Generation = Type.Optional(
  Type.Integer({ format: 'int64', description: 'generation of the object that this was said of' }),
)
