! Prints addresses of its own code, within what the compiler cuts out: a module's, an external, an internal procedure's,
! and the main program's.
module mesh
  implicit none
  interface
    subroutine here(name) bind(c)
      character(kind=1), intent(in) :: name(*)
    end subroutine
  end interface
contains
  subroutine smooth()
    !$omp parallel num_threads(1)
    call here("smooth" // char(0))
    !$omp end parallel
  end subroutine
end module

subroutine fill()
  use mesh, only: here
  !$omp parallel num_threads(1)
  call here("fill" // char(0))
  !$omp end parallel
end subroutine

program heat
  use mesh
  implicit none
  call smooth()
  call fill()
  call inner()
  !$omp parallel num_threads(1)
  call here("heat" // char(0))
  !$omp end parallel
contains
  subroutine inner()
    !$omp parallel num_threads(1)
    call here("inner" // char(0))
    !$omp end parallel
  end subroutine
end program
