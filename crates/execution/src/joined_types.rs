//! Types of tasks that are one to who reads: those of a construct that the compiler has copied.

use crate::{Place, PlaceKind, TypeIndex};

/// For each type the one that it is.
#[derive(Clone, Debug, Default)]
pub struct JoinedTypes(Vec<TypeIndex>);

impl JoinedTypes {
    /// By [`TypeIndex`]; types beyond are themselves.
    pub fn of(types: Vec<TypeIndex>) -> JoinedTypes {
        let is_own = (0_u32..).zip(&types).all(|(own, ty)| ty.0 == own);
        JoinedTypes(if is_own { Vec::new() } else { types })
    }

    /// Whether each type is itself.
    pub(crate) fn is_none(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn ty(&self, ty: TypeIndex) -> TypeIndex {
        self.0.get(ty.index()).copied().unwrap_or(ty)
    }

    pub(crate) fn place(&self, place: Place) -> Place {
        match place.kind() {
            PlaceKind::Type(ty) => Place::of_type(self.ty(ty)),
            _ => place,
        }
    }
}
