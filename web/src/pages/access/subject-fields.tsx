import { type ReactNode, useId } from 'react'
import { Field } from './field.tsx'

/** Whom it is about: a person by name, groups, or both. */
export function SubjectFields({
  user,
  groups,
  onUser,
  onGroups,
  userLabel = 'Person',
  required = false,
}: {
  user: string
  groups: string
  onUser: (user: string) => void
  onGroups: (groups: string) => void
  userLabel?: string
  required?: boolean
}): ReactNode {
  const id = useId()
  return (
    <>
      <Field
        id={`${id}-user`}
        label={userLabel}
        value={user}
        onChange={onUser}
        placeholder="alice"
        required={required}
      />
      <Field
        id={`${id}-groups`}
        label="In groups"
        value={groups}
        onChange={onGroups}
        placeholder="developers, on-call"
        hint="comma between them"
      />
    </>
  )
}
