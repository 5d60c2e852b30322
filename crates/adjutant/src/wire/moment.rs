//! A moment, as answers write it and as the description of the API names it.

use adjutant_core::time::Time;
use serde::Serialize;
use utoipa::ToSchema;

/// A moment: UTC, RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, format = DateTime, example = "2026-01-31T12:00:00.000Z")]
pub(crate) struct Moment(Time);

impl From<Time> for Moment {
    fn from(time: Time) -> Self {
        Self(time)
    }
}
