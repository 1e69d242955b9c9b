import { FleetError } from '#model'

/** The object says something no table has a field for, or of another type: answer JSON instead. */
export class UnencodableFieldError extends FleetError {
  override readonly name = 'UnencodableFieldError'
  readonly code = 'unencodable_field'
  readonly retryable = false
  /** such as `spec.containers.image` */
  readonly path: string

  constructor(path: string) {
    super(`the field ${path} has no place in the protobuf form of its kind`)
    this.path = path
  }
}

/** The bytes are no object of a kind we know. */
export class ProtobufError extends FleetError {
  override readonly name = 'ProtobufError'
  readonly code = 'protobuf_unreadable'
  readonly retryable = false
}
